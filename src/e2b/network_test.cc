#include "e2b/network.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace caisson::e2b {
namespace {

namespace json = boost::json;

Result<NetworkSettings> Decode(std::string_view text, bool secure = true) {
  return DecodeNetwork(json::parse(text).as_object(), secure);
}

TEST(DecodeNetwork, TakesWhatIsEnforced) {
  struct Case {
    const char* body;
    bool internet;
    const char* shown;
  };
  for (auto [body, internet, shown] : {
           Case{"{}", true, ""},
           {R"({"allow_internet_access":true})", true, ""},
           {R"({"allow_internet_access":false})", false, ""},
           {R"({"allow_internet_access":null,"network":null})", true, ""},
           {R"({"network":{}})", true, "{}"},
           {R"({"network":{"denyOut":["0.0.0.0/0"]}})", true, R"({"denyOut":["0.0.0.0/0"]})"},
           {R"({"network":{"denyOut":["8.8.8.8"]}})", true, R"({"denyOut":["8.8.8.8"]})"},
           {R"({"network":{"allowOut":["*.example.com"],"denyOut":["0.0.0.0/0"]}})", true,
            R"({"allowOut":["*.example.com"],"denyOut":["0.0.0.0/0"]})"},
           {R"({"allow_internet_access":false,"network":{"allowOut":["a.example"]}})", false,
            R"({"allowOut":["a.example"]})"},
           {R"({"network":{"allowOut":[],"denyOut":[]}})", true, R"({"allowOut":[],"denyOut":[]})"},
           {R"({"network":{"allowPublicTraffic":false,"denyOut":["10.0.0.0/8"],
                "allowOut":["1.1.1.1"]}})",
            true,
            R"({"allowPublicTraffic":false,"allowOut":["1.1.1.1"],"denyOut":["10.0.0.0/8"]})"},
           {R"({"network":{"rules":{},"httpsPorts":[],"dnsServers":[],"egressProxy":null,
                "allowPublicTraffic":null}})",
            true, "{}"},
           {R"({"network":{"maskRequestHost":"app.example:${PORT}"}})", true,
            R"({"maskRequestHost":"app.example:${PORT}"})"},
       }) {
    auto settings = Decode(body);
    ASSERT_TRUE(settings) << body << ": " << settings.error().message();
    EXPECT_EQ(settings->allow_internet, internet) << body;
    EXPECT_EQ(settings->options.as_requested_json, shown) << body;
  }
}

std::string ManyRules(int domains, int headers, size_t value_size) {
  json::object rules;
  for (int d = 0; d < domains; ++d) {
    json::object values;
    for (int h = 0; h < headers; ++h)
      values["h" + std::to_string(h)] = std::string(value_size, 'x');
    json::object transform{{"headers", std::move(values)}};
    json::object rule{{"transform", std::move(transform)}};
    rules["d" + std::to_string(d) + ".com"] = json::array{std::move(rule)};
  }
  return json::serialize(json::object{{"network", json::object{{"rules", std::move(rules)}}}});
}

TEST(DecodeNetwork, RefusesTheRest) {
  struct Case {
    std::string body;
    Code code;
    const char* text;
  };
  constexpr Code kBad = Code::kInvalidArgument, kLater = Code::kUnimplemented;
  for (const auto& [body, code, text] : {
           Case{R"({"network":[]})", kBad, "network must be an object"},
           {R"({"network":{"denyOut":["example.com"]}})", kBad, "example.com"},
           {R"({"network":{"denyOut":"10.0.0.0/8"}})", kBad, "denyOut must be a list"},
           {R"({"network":{"allowOut":[1]}})", kBad, "allowOut must be a list of strings"},
           {R"({"network":{"allowOut":["example.com"]}})", kBad, "0.0.0.0/0"},
           {R"({"network":{"egressProxy":{"address":"p:1"}}})", Code::kPermissionDenied,
            "egressProxy"},
           {R"({"network":{"maskRequestHost":"a\r\nX-Evil: 1"}})", kBad, "maskRequestHost"},
           {R"({"network":{"maskRequestHost":"a b"}})", kBad, "maskRequestHost"},
           {R"({"network":{"httpsPorts":[49983]}})", kBad, "49983"},
           {R"({"network":{"httpsPorts":[0]}})", kBad, "1 to 65535"},
           {R"({"network":{"httpsPorts":["x"]}})", kBad, "1 to 65535"},
           {R"({"network":{"dnsServers":["nope"]}})", kBad, "nope"},
           {R"({"network":{"dnsServers":["1.1.1.1"]}})", kLater, "resolvers"},
           {R"({"network":{"rules":{"a.com":[{},{}]}}})", kBad, "one rule"},
           {R"({"network":{"rules":{"a.com":{}}}})", kBad, "one rule"},
           {ManyRules(11, 1, 1), kBad, "at most 10 domains"},
           {ManyRules(1, 21, 1), kBad, "more than 20 headers"},
           {ManyRules(1, 1, 2049), kBad, "up to 2048"},
           {ManyRules(10, 20, 2048), kLater, "outgoing requests"},
       }) {
    auto settings = Decode(body);
    ASSERT_FALSE(settings) << body;
    EXPECT_EQ(settings.error().code(), code) << body << ": " << settings.error().message();
    EXPECT_NE(settings.error().message().find(text), std::string::npos)
        << settings.error().message();
  }
  EXPECT_EQ(Decode(R"({"network":{"allowPublicTraffic":false}})", false).error().code(), kBad);
}

TEST(DecodeNetworkUpdate, ReplacesTheWayOutAndKeepsTheWayIn) {
  sandbox::NetworkOptions current{
      .allow_public_traffic = false,
      .mask_request_host = "x",
      .as_requested_json =
          R"({"allowPublicTraffic":false,"maskRequestHost":"x","denyOut":["10.0.0.0/8"]})"};
  auto update = [&](std::string_view text) {
    return DecodeNetworkUpdate(json::parse(text).as_object(), current);
  };
  auto cleared = update("{}").value();
  EXPECT_TRUE(cleared.allow_internet);
  EXPECT_EQ(cleared.options.as_requested_json,
            R"({"allowPublicTraffic":false,"maskRequestHost":"x"})");
  EXPECT_FALSE(cleared.options.allow_public_traffic);
  auto replaced = update(R"({"denyOut":["192.168.0.0/16"],"allowPublicTraffic":true})").value();
  EXPECT_EQ(json::parse(replaced.options.as_requested_json), json::parse(R"({
      "allowPublicTraffic":false,"maskRequestHost":"x","denyOut":["192.168.0.0/16"]})"));
  EXPECT_FALSE(update(R"({"allow_internet_access":false})")->allow_internet);
  EXPECT_EQ(update(R"({"denyOut":["x"]})").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(update(R"({"allowOut":["a.example"]})").error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(update(R"({"allowOut":["a.example"],"denyOut":["0.0.0.0/0"]})"));
}

}  // namespace
}  // namespace caisson::e2b

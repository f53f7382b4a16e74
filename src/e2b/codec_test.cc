#include "e2b/codec.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "e2b/fields.h"

namespace caisson::e2b {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

json::object Body(std::string_view text) { return ParseBody(text, false).value(); }

TEST(DecodeSandboxId, CutsTheClientIdOff) {
  EXPECT_EQ(DecodeSandboxId("iabc1"), "iabc1");
  EXPECT_EQ(DecodeSandboxId("iabc1-caisson"), "iabc1");
  EXPECT_EQ(DecodeSandboxId("iabc1-"), "iabc1");
  EXPECT_EQ(DecodeSandboxId("a-b-c").error().message(), "Invalid sandbox ID");
  EXPECT_EQ(DecodeSandboxId("a-b-c").error().code(), Code::kInvalidArgument);
  for (const char* bad : {"", "-x", "ABC", "a/b", "a b", "a.b"}) {
    ASSERT_FALSE(DecodeSandboxId(bad)) << bad;
    EXPECT_EQ(DecodeSandboxId(bad).error().code(), Code::kNotFound) << bad;
  }
}

TEST(DecodeCreate, HasTheDefaultsOfEachVersion) {
  auto v1 = DecodeCreate(Body(R"({"templateID":"base"})"), Version::kV1, {}).value();
  EXPECT_EQ(v1.template_name, "base");
  EXPECT_EQ(v1.timeout, 15s);
  EXPECT_FALSE(v1.secure);
  auto v2 = DecodeCreate(Body(R"({"templateID":"base","secure":false})"), Version::kV2, {}).value();
  EXPECT_EQ(v2.timeout, 300s);
  EXPECT_TRUE(v2.secure);  // v2 has no such field
  for (const auto& options : {v1, v2}) {
    EXPECT_TRUE(options.allow_internet);
    EXPECT_TRUE(options.network.allow_public_traffic);
    EXPECT_EQ(options.network.as_requested_json, "");
    EXPECT_TRUE(options.metadata.empty());
    EXPECT_TRUE(options.env.empty());
  }
}

TEST(DecodeCreate, ReadsEveryField) {
  auto options = DecodeCreate(Body(R"({"templateID":"t","timeout":77,"metadata":{"a":"b"},
      "envVars":{"X":"1"},"secure":true,"allow_internet_access":false,"autoPause":false,
      "autoPauseMemory":true,"autoResume":{"enabled":false},"mcp":{"anything":1},"iam":{"tokens":{}},
      "volumeMounts":[],"network":{"allowPublicTraffic":false,"maskRequestHost":"localhost:${PORT}"},
      "unknown":[{}]})"),
                              Version::kV1, {})
                     .value();
  EXPECT_EQ(options.template_name, "t");
  EXPECT_EQ(options.timeout, 77s);
  EXPECT_EQ(options.metadata, (sandbox::StringMap{{"a", "b"}}));
  EXPECT_EQ(options.env, (sandbox::StringMap{{"X", "1"}}));
  EXPECT_TRUE(options.secure);
  EXPECT_FALSE(options.allow_internet);
  EXPECT_FALSE(options.network.allow_public_traffic);
  EXPECT_EQ(options.network.mask_request_host, "localhost:${PORT}");
}

TEST(DecodeCreate, NullIsAbsent) {
  auto options = DecodeCreate(Body(R"({"templateID":"t","timeout":null,"metadata":null,
      "envVars":null,"secure":null,"allow_internet_access":null,"autoPause":null,"autoResume":null,
      "autoPauseMemory":null,"network":null,"iam":null,"mcp":null,"volumeMounts":null})"),
                              Version::kV1, {});
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_EQ(options->timeout, 15s);
}

struct Refused {
  const char* body;
  Code code;
  const char* text;
};

TEST(DecodeCreate, RefusesWithATextThatNamesTheField) {
  constexpr Code kBad = Code::kInvalidArgument, kLater = Code::kUnimplemented;
  for (auto [body, code, text] : {
           Refused{R"({})", kBad, "templateID is required"},
           {R"({"templateID":""})", kBad, "templateID is required"},
           {R"({"templateID":5})", kBad, "templateID must be a string"},
           {R"({"templateID":"b","timeout":0})", kBad, "Timeout must be greater than 0"},
           {R"({"templateID":"b","timeout":-1})", kBad, "Timeout must be greater than 0"},
           {R"({"templateID":"b","timeout":"5"})", kBad, "timeout must be an integer"},
           {R"({"templateID":"b","timeout":1.5})", kBad, "timeout must be an integer"},
           {R"({"templateID":"b","timeout":99999999999})", kBad, "timeout must be an integer"},
           {R"({"templateID":"b","metadata":{"a":1}})", kBad, "metadata must be"},
           {R"({"templateID":"b","metadata":["a"]})", kBad, "metadata must be an object"},
           {R"({"templateID":"b","envVars":"A=1"})", kBad, "envVars must be an object"},
           {R"({"templateID":"b","secure":"yes"})", kBad, "secure must be true or false"},
           {R"({"templateID":"b","allow_internet_access":1})", kBad, "allow_internet_access"},
           {R"({"templateID":"b","autoPauseMemory":false})", kBad, "autoPauseMemory"},
           {R"({"templateID":"b","autoPause":true,"autoPauseMemory":false,
               "autoResume":{"enabled":true}})",
            kBad, "autoPauseMemory"},
           {R"({"templateID":"b","autoResume":{"enabled":"x"}})", kBad, "autoResume.enabled"},
           {R"({"templateID":"b","iam":{"tokens":{"a":{"audience":"x","tokenType":"JWT-SVID"}}}})",
            kLater, "identity tokens"},
           {R"({"templateID":"b","iam":{"tokens":{"a":{"tokenType":"other"}}}})", kBad, "JWT-SVID"},
           {R"({"templateID":"b","iam":{"tokens":{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{}}}})",
            kBad, "at most 5"},
           {R"({"templateID":"b","volumeMounts":[{"name":"v","path":"/data"}]})", kBad,
            "volume 'v' does not exist"},
           {R"({"templateID":"b","volumeMounts":[{"name":"v","path":"data"}]})", kBad,
            "absolute path"},
           {R"({"templateID":"b","volumeMounts":[{"name":"v","path":"/a/../b"}]})", kBad,
            "absolute path"},
           {R"({"templateID":"b","volumeMounts":[{"name":"v","path":"/a"},
               {"name":"w","path":"/a"}]})",
            kBad, "used twice"},
           {R"({"templateID":"b","volumeMounts":[1]})", kBad, "volumeMounts"},
       }) {
    auto options = DecodeCreate(Body(body), Version::kV1, {});
    ASSERT_FALSE(options) << body;
    EXPECT_EQ(options.error().code(), code) << body;
    EXPECT_NE(options.error().message().find(text), std::string::npos)
        << body << ": " << options.error().message();
  }
}

TEST(DecodeCreate, Lifecycle) {
  auto decode = [](const char* body) {
    return DecodeCreate(Body(body), Version::kV2, {}).value().lifecycle;
  };
  EXPECT_FALSE(decode(R"({"templateID":"b"})").auto_pause);
  EXPECT_FALSE(decode(R"({"templateID":"b"})").auto_resume);
  auto paused = decode(R"({"templateID":"b","autoPause":true,"autoPauseMemory":false})");
  EXPECT_TRUE(paused.auto_pause);
  EXPECT_FALSE(paused.auto_pause_memory);
  auto both = decode(R"({"templateID":"b","autoPause":true,"autoResume":{"enabled":true}})");
  EXPECT_TRUE(both.auto_pause && both.auto_pause_memory && both.auto_resume);
}

TEST(ParseBody, TakesOneObjectAndNothingElse) {
  EXPECT_TRUE(ParseBody("{}", false));
  EXPECT_TRUE(ParseBody(" {\"a\": 1}\n", false));
  EXPECT_TRUE(ParseBody("", true));
  EXPECT_TRUE(ParseBody("null", true));
  std::string deep = std::string(100, '[') + std::string(100, ']');
  for (std::string bad : {std::string(), std::string(" "), std::string("[]"), std::string("null"),
                          std::string("{not json"), std::string("{} {}"), "{\"a\":" + deep + "}",
                          std::string("{\"a\":\"\xff\"}")})
    EXPECT_EQ(ParseBody(bad, false).error().code(), Code::kInvalidArgument) << bad;
}

TEST(DecodeConnect, NeedsATimeoutInV1Only) {
  EXPECT_EQ(DecodeConnect(Body(R"({"timeout":5})"), Version::kV1, {})->timeout, 5s);
  EXPECT_EQ(DecodeConnect(Body(R"({"timeout":0})"), Version::kV1, {})->timeout, 0s);
  EXPECT_EQ(DecodeConnect(Body("{}"), Version::kV2, {})->timeout, 300s);
  EXPECT_TRUE(DecodeConnect(Body("{}"), Version::kV2, {})->memory);
  EXPECT_FALSE(DecodeConnect(Body(R"({"memory":false})"), Version::kV2, {})->memory);
  EXPECT_FALSE(DecodeConnect(Body("{}"), Version::kV1, {}));
  EXPECT_FALSE(DecodeConnect(Body(R"({"timeout":"x"})"), Version::kV2, {}));
  EXPECT_FALSE(DecodeConnect(Body(R"({"timeout":-1})"), Version::kV2, {}));
}

TEST(DecodeTimeout, TakesNegativeAsNow) {
  EXPECT_EQ(DecodeTimeout(Body(R"({"timeout":9})")), 9s);
  EXPECT_EQ(DecodeTimeout(Body(R"({"timeout":-9})")), 0s);
  EXPECT_FALSE(DecodeTimeout(Body("{}")));
  EXPECT_FALSE(DecodeTimeout(Body(R"({"timeout":1.5})")));
  EXPECT_EQ(DecodeRefresh(Body("{}")), 15s);
  EXPECT_EQ(DecodeRefresh(Body(R"({"duration":5})")), 15s);
  EXPECT_EQ(DecodeRefresh(Body(R"({"duration":100})")), 100s);
}

TEST(EncodeTime, AlwaysHasSixDigits) {
  EXPECT_EQ(EncodeTime(Time(1700000000s)), "2023-11-14T22:13:20.000000Z");
  EXPECT_EQ(EncodeTime(Time(1700000000s) + 1234567ns), "2023-11-14T22:13:20.001234Z");
  EXPECT_EQ(EncodeTime(Time(1700000000s) + 500ms), "2023-11-14T22:13:20.500000Z");
}

sandbox::Info MakeInfo() {
  sandbox::Info info;
  info.id = "i1";
  info.template_id = "t1";
  info.alias = "base";
  info.metadata = {{"k", "v"}};
  info.cpus = 2;
  info.memory_mb = 1024;
  info.disk_mb = 10'240;
  info.started_at = Time(1700000000s);
  info.end_at = Time(1700000300s);
  info.access_token = "secret-token";
  return info;
}

TEST(EncodeSandbox, HasWhatTheSdksNeed) {
  EXPECT_EQ(json::value(EncodeSandbox(MakeInfo(), "d:8000")), json::parse(R"({
      "sandboxID":"i1","templateID":"t1","clientID":"caisson","envdVersion":"0.6.13",
      "domain":"d:8000","alias":"base","envdAccessToken":"secret-token"})"));
  sandbox::Info open = MakeInfo();
  open.access_token = "";
  open.alias = "";
  open.traffic_token = "traffic";
  EXPECT_EQ(json::value(EncodeSandbox(open, "d")), json::parse(R"({
      "sandboxID":"i1","templateID":"t1","clientID":"caisson","envdVersion":"0.6.13","domain":"d",
      "trafficAccessToken":"traffic"})"));
}

TEST(EncodeListed, TellsNoToken) {
  EXPECT_EQ(json::value(EncodeListed(MakeInfo())), json::parse(R"({
      "sandboxID":"i1","templateID":"t1","clientID":"caisson","envdVersion":"0.6.13","alias":"base",
      "startedAt":"2023-11-14T22:13:20.000000Z","endAt":"2023-11-14T22:18:20.000000Z",
      "state":"running","cpuCount":2,"memoryMB":1024,"diskSizeMB":10240,"metadata":{"k":"v"}})"));
}

TEST(EncodeDetail, AddsTokenNetworkAndLifecycle) {
  sandbox::Info info = MakeInfo();
  info.allow_internet = false;
  info.network.as_requested_json = R"({"denyOut":["0.0.0.0/0"]})";
  json::object detail = EncodeDetail(info, "d");
  EXPECT_EQ(detail["envdAccessToken"], "secret-token");
  EXPECT_EQ(detail["domain"], "d");
  EXPECT_EQ(detail["allowInternetAccess"], false);
  EXPECT_EQ(detail["network"], json::parse(R"({"denyOut":["0.0.0.0/0"]})"));
  EXPECT_EQ(detail["lifecycle"], json::parse(R"({"onTimeout":"kill","autoResume":false})"));
  info.lifecycle = {.auto_pause = true, .auto_resume = true};
  EXPECT_EQ(EncodeDetail(info, "d")["lifecycle"],
            json::parse(R"({"onTimeout":"pause","autoResume":true})"));
  EXPECT_FALSE(EncodeDetail(MakeInfo(), "d").contains("network"));
}

TEST(EncodeMetric, CountsBytesAndSeconds) {
  sandbox::Sample sample;
  sample.usage = {.at = Time(1700000000s) + 400ms,
                  .memory_used_bytes = 1,
                  .memory_cache_bytes = 2,
                  .memory_limit_bytes = 3,
                  .disk_used_bytes = 4,
                  .disk_total_bytes = 5};
  sample.cpu_used_pct = 12.3456;
  EXPECT_EQ(json::value(EncodeMetric(2, sample)), json::parse(R"({
      "timestamp":"2023-11-14T22:13:20.400000Z","timestampUnix":1700000000,"cpuCount":2,
      "cpuUsedPct":12.35,"memUsed":1,"memTotal":3,"memCache":2,"diskUsed":4,"diskTotal":5})"));
}

TEST(EncodeLog, ALineIsJsonThatTheCliReads) {
  store::SandboxEvent event{.sandbox_id = "i1",
                            .at = Time(1700000000s),
                            .type = "killed",
                            .level = "warn",
                            .message = "a \"quoted\" text",
                            .fields = {{"level", "not this"}, {"reason", "timeout"}}};
  json::object line = EncodeLogLine(event);
  EXPECT_EQ(line["timestamp"], "2023-11-14T22:13:20.000000Z");
  EXPECT_EQ(json::parse(line["line"].as_string()), json::parse(R"({
      "timestamp":"2023-11-14T22:13:20.000000Z","level":"warn","logger":"caisson",
      "message":"a \"quoted\" text","reason":"timeout","event":"killed"})"));
  EXPECT_EQ(json::value(EncodeLogEntry(event)), json::parse(R"({
      "timestamp":"2023-11-14T22:13:20.000000Z","level":"warn","message":"a \"quoted\" text",
      "fields":{"level":"not this","reason":"timeout","event":"killed"}})"));
}

}  // namespace
}  // namespace caisson::e2b

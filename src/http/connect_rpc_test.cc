#include "http/connect_rpc.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "http/test_support.h"

namespace caisson::http {
namespace {

constexpr size_t kMaxRequest = 1000;

Task<Result<boost::json::object>> Greet(Exchange&, boost::json::object request) {
  if (!request.contains("name")) co_return Fail(Code::kNotFound, "nobody to greet");
  if (request["name"] == "throw") throw std::runtime_error("expected by the test");
  boost::json::object answer;
  answer["greeting"] = "hello " + std::string(request["name"].as_string());
  co_return answer;
}

Task<Status> Count(MessageStream& stream, boost::json::object request) {
  auto to = request.contains("to") ? request["to"].as_int64() : 0;
  for (int64_t i = 1; i <= to; ++i) CO_TRY(co_await stream.Send({{"n", i}}));
  if (request.contains("fail")) co_return Fail(Code::kFailedPrecondition, "told to fail");
  if (request.contains("throw")) throw std::runtime_error("expected by the test");
  co_return Status();
}

Task<void> Serve(Exchange& exchange) {
  static const UnaryMethod greet = Greet;
  static const StreamMethod count = Count;
  if (exchange.request().target == "/test.Test/Greet")
    co_await ServeUnary(exchange, greet, kMaxRequest);
  else
    co_await ServeStream(exchange, count, kMaxRequest);
}

RawAnswer Call(RawClient& client, std::string target, std::string type, std::string body,
               std::string more_headers = "") {
  client.Send(
      fmt::format("POST /test.Test/{} HTTP/1.1\r\nHost: x\r\nContent-Type: {}\r\n{}Content-Length: "
                  "{}\r\n\r\n{}",
                  target, type, more_headers, body.size(), body));
  return client.ReadAnswer();
}

class ConnectRpc : public testing::Test {
 protected:
  RawAnswer Unary(std::string body, std::string headers = "",
                  std::string type = "application/json") {
    return Call(client_, "Greet", type, body, headers);
  }
  // The messages of a stream; the last is the end.
  std::vector<std::pair<int, std::string>> Stream(std::string body, std::string headers = "") {
    auto answer = Call(client_, "Count", "application/connect+json", body, headers);
    EXPECT_EQ(answer.status, 200u);
    EXPECT_EQ(answer.Header("Content-Type"), "application/connect+json");
    std::vector<std::pair<int, std::string>> messages;
    std::string_view rest = answer.body;
    while (rest.size() >= 5) {
      size_t size = static_cast<uint8_t>(rest[3]) * 256u + static_cast<uint8_t>(rest[4]);
      messages.emplace_back(rest[0], rest.substr(5, size));
      rest.remove_prefix(5 + size);
    }
    EXPECT_TRUE(rest.empty());
    return messages;
  }
  std::string StreamError(std::string body, std::string headers = "") {
    auto messages = Stream(body, headers);
    EXPECT_EQ(messages.back().first, 2);
    auto end = boost::json::parse(messages.back().second).as_object();
    return end.contains("error") ? std::string(end["error"].as_object()["code"].as_string()) : "";
  }

  TestServer server_{Serve};
  RawClient client_{server_.port()};
};

TEST_F(ConnectRpc, Unary) {
  auto answer = Unary(R"({"name":"world","unknown":1})");
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.Header("Content-Type"), "application/json");
  EXPECT_EQ(answer.body, R"({"greeting":"hello world"})");
  EXPECT_EQ(Unary(R"({"name":"x"})", "", "application/json; charset=utf-8").status, 200u);
}

TEST_F(ConnectRpc, UnaryErrors) {
  auto missing = Unary("");  // an empty body is {}
  EXPECT_EQ(missing.status, 404u);
  EXPECT_EQ(missing.body, R"({"code":"not_found","message":"nobody to greet"})");
  EXPECT_EQ(Unary("{").status, 400u);
  EXPECT_EQ(Unary("[1]").status, 400u);
  EXPECT_EQ(Unary(R"({"a":)" + std::string(200, '[') + std::string(200, ']') + "}").status, 400u);
  EXPECT_EQ(Unary(R"({"name":")" + std::string(2000, 'x') + R"("})").status, 429u);
  EXPECT_EQ(Unary("{}", "Content-Encoding: gzip\r\n").status, 501u);
  EXPECT_EQ(Unary("{}", "Connect-Protocol-Version: 2\r\n").status, 400u);
  auto thrown = Unary(R"({"name":"throw"})");
  EXPECT_EQ(thrown.status, 500u);
  EXPECT_NE(thrown.body.find(R"("code":"internal")"), std::string::npos);
  EXPECT_EQ(thrown.body.find("expected by the test"), std::string::npos);
}

TEST_F(ConnectRpc, RefusesOtherMediaTypes) {
  auto proto = Unary("x", "", "application/proto");
  EXPECT_EQ(proto.status, 415u);
  EXPECT_EQ(proto.Header("Accept-Post"), "application/json");
  auto stream = Call(client_, "Count", "application/json", "{}");
  EXPECT_EQ(stream.status, 415u);
  EXPECT_EQ(stream.Header("Accept-Post"), "application/connect+json");
  client_.Send("GET /test.Test/Greet HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client_.ReadAnswer().status, 405u);
}

TEST_F(ConnectRpc, Streams) {
  auto messages = Stream(Envelope(R"({"to":3})"));
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0], std::pair(0, std::string(R"({"n":1})")));
  EXPECT_EQ(messages[2], std::pair(0, std::string(R"({"n":3})")));
  EXPECT_EQ(messages[3], std::pair(2, std::string("{}")));
  EXPECT_EQ(Stream(Envelope("")).size(), 1u);  // {}: nothing to count
}

TEST_F(ConnectRpc, StreamErrorsTravelInTheEnd) {
  auto late = Stream(Envelope(R"({"to":1,"fail":true})"));
  ASSERT_EQ(late.size(), 2u);
  EXPECT_EQ(late[1].second, R"({"error":{"code":"failed_precondition","message":"told to fail"}})");
  EXPECT_EQ(StreamError(Envelope(R"({"fail":true})")), "failed_precondition");
  EXPECT_EQ(StreamError(Envelope(R"({"throw":true})")), "internal");
  EXPECT_EQ(StreamError(Envelope("nonsense")), "invalid_argument");
  EXPECT_EQ(StreamError(Envelope("{}", 1)), "invalid_argument");
  EXPECT_EQ(StreamError(Envelope("{}", 2)), "invalid_argument");
  EXPECT_EQ(StreamError(""), "invalid_argument");
  EXPECT_EQ(StreamError(Envelope("{}").substr(0, 3)), "invalid_argument");
  EXPECT_EQ(StreamError(Envelope("{}").substr(0, 6)), "invalid_argument");
  EXPECT_EQ(StreamError(Envelope(std::string(2000, ' '))), "resource_exhausted");
  EXPECT_EQ(StreamError(Envelope("{}"), "Connect-Content-Encoding: gzip\r\n"), "unimplemented");
}

TEST(ConnectTimeout, IsParsedStrictly) {
  auto timeout = [](std::string_view text) {
    RequestHead head;
    head.headers.Add("connect-timeout-ms", text);
    return ConnectTimeout(head);
  };
  EXPECT_EQ(ConnectTimeout({}), std::nullopt);
  EXPECT_EQ(timeout("60000"), 60000ms);
  EXPECT_EQ(timeout("-1"), std::nullopt);
  EXPECT_EQ(timeout("12345678901"), std::nullopt);
  EXPECT_EQ(timeout("soon"), std::nullopt);
}

}  // namespace
}  // namespace caisson::http

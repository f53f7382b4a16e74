// What a hostile or broken client gets from the server.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "http/server.h"
#include "http/test_support.h"

namespace caisson::http {
namespace {

// Each of these must end the connection with this status: a proxy in front could read it otherwise.
struct Refused {
  const char* name;
  unsigned status;
  const char* request;
};

class Strict : public testing::TestWithParam<Refused> {};

TEST_P(Strict, RefusesAndCloses) {
  TestServer server(EchoHandler);
  RawClient client(server.port());
  client.Send(GetParam().request);
  auto answer = client.ReadAnswer();
  EXPECT_EQ(answer.status, GetParam().status);
  EXPECT_EQ(answer.Header("Connection"), "close");
  EXPECT_NE(answer.Header("X-Request-Id"), "");
  client.CloseWrite();
  EXPECT_EQ(client.ReadToEnd(), "");  // nothing behind it was taken for a request
}

INSTANTIATE_TEST_SUITE_P(
    Requests, Strict,
    testing::Values(
        Refused{"LengthAndChunked", 400,
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: "
                "chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"},
        Refused{"ChunkedAndLength", 400,
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: "
                "5\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"},
        Refused{
            "TwoLengths", 400,
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"},
        Refused{"NegativeLength", 400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"},
        Refused{"HugeLength", 400,
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"},
        Refused{"PlusLength", 400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello"},
        Refused{"UnknownCoding", 501,
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nhello"},
        Refused{"CodingList", 501,
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
        Refused{"CodingTwice", 400,
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
                "chunked\r\n\r\n0\r\n\r\n"},
        Refused{"CodingInHttp10", 400,
                "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        Refused{"BareLineFeed", 400, "GET / HTTP/1.1\nHost: x\n\n"},
        Refused{"BareLineFeedInField", 400, "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n"},
        Refused{"SpaceBeforeColon", 400,
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nhello"},
        Refused{"NulInValue", 400, "GET / HTTP/1.1\r\nHost: x\r\nA: b\x01\r\n\r\n"},
        Refused{"NoHost", 400, "GET / HTTP/1.1\r\n\r\n"},
        Refused{"TwoHosts", 400, "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"},
        Refused{"Http2", 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
        Refused{"NotHttp", 400, "\x16\x03\x01\x02 hello this is no HTTP at all\r\n\r\n"},
        Refused{"ChunkSizeNotHex", 400,
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n"},
        Refused{"ChunkSizeOverflow", 400,
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n"},
        Refused{"ChunkBareLineFeed", 400,
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\n5\nhello\r\n0\r\n\r\n"},
        Refused{"ChunkWithoutEnd", 400,
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n"},
        Refused{"LengthInTrailer", 400,
                "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                "chunked\r\n\r\n0\r\nContent-Length: 9\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Limits, HeaderSize) {
  ServerOptions options;
  options.max_header_bytes = 8 << 10;
  TestServer server(EchoHandler, options);
  for (bool many_small : {false, true}) {
    RawClient client(server.port());
    client.Send("GET / HTTP/1.1\r\nHost: x\r\n");
    // Twice as much as allowed, and no end in sight.
    if (many_small)
      for (int i = 0; i < 2000; ++i) client.Send("A: b\r\nC: d\r\n");
    else
      client.Send("A: " + std::string(16 << 10, 'a'));
    EXPECT_EQ(client.ReadAnswer().status, 431u) << many_small;
  }
  RawClient fits(server.port());
  fits.Send("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(7 << 10, 'a') + "\r\n\r\n");
  EXPECT_EQ(fits.ReadAnswer().status, 200u);
}

TEST(Limits, EndlessChunkHeader) {
  TestServer server(EchoHandler, {.max_header_bytes = 8 << 10});
  RawClient client(server.port());
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;");
  client.Send(std::string(100 << 10, 'x'));
  EXPECT_EQ(client.ReadAnswer().status, 400u);
}

TEST(Limits, SlowHeaderIs408) {
  TestServer server(EchoHandler, {.header_timeout = 200ms});
  RawClient drip(server.port());
  drip.Send("GET / HTTP/1.1\r\n");
  std::thread dripping([&] {
    for (int i = 0; i < 10; ++i) {  // progress does not help
      std::this_thread::sleep_for(30ms);
      drip.Send("A: b\r\n");
    }
  });
  EXPECT_EQ(drip.ReadAnswer().status, 408u);
  dripping.join();
  RawClient silent(server.port());
  EXPECT_EQ(silent.ReadToEnd(), "");  // said nothing, gets nothing
}

TEST(Limits, IdleConnectionsEnd) {
  TestServer server(EchoHandler, {.idle_timeout = 150ms});
  RawClient client(server.port());
  auto start = std::chrono::steady_clock::now();
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer().status, 200u);
  EXPECT_EQ(client.ReadToEnd(), "");
  auto waited = std::chrono::steady_clock::now() - start;
  EXPECT_GE(waited, 100ms);
  EXPECT_LT(waited, 20s);
}

TEST(Limits, StalledUploadIs408) {
  TestServer server(EchoHandler, {.body_stall_timeout = 1s});
  RawClient client(server.port());
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n");
  for (int i = 0; i < 5; ++i) {  // slow is allowed
    std::this_thread::sleep_for(300ms);
    client.Send("x");
  }
  EXPECT_EQ(client.ReadAnswer().status, 408u);
}

struct Outcome {
  std::promise<Code> code;
};

Task<void> SendMuch(Exchange& exchange, Outcome& outcome) {
  EXPECT_TRUE(co_await exchange.StartStream({}, std::nullopt));
  std::string block(1 << 20, 'x');
  for (;;) {
    Status written = co_await exchange.Write(block);
    if (written) continue;
    outcome.code.set_value(written.error().code());
    co_return;
  }
}

TEST(Limits, AClientThatDoesNotReadIsCutOff) {
  Outcome outcome;
  Handler handler = [&outcome](Exchange& exchange) { return SendMuch(exchange, outcome); };
  TestServer server(handler, {.body_stall_timeout = 200ms});
  RawClient client(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  auto code = outcome.code.get_future();
  ASSERT_EQ(code.wait_for(30s), std::future_status::ready);
  EXPECT_EQ(code.get(), Code::kDeadlineExceeded);
  EXPECT_TRUE(server.WaitForConnections(0));
}

TEST(Limits, Connections) {
  TestServer server(EchoHandler, {.max_connections = 2});
  RawClient one(server.port()), two(server.port());
  for (RawClient* client : {&one, &two}) {
    client->Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client->ReadAnswer().status, 200u);
  }
  RawClient three(server.port());
  EXPECT_EQ(three.ReadToEnd(), "");
  two.Reset();
  ASSERT_TRUE(server.WaitForConnections(1));
  RawClient four(server.port());
  four.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(four.ReadAnswer().status, 200u);
}

TEST(Limits, RunningOutOfDescriptorsDoesNotSpin) {
  TestServer server(EchoHandler);
  RawClient before(server.port());
  before.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(before.ReadAnswer().status, 200u);

  rlimit old{};
  getrlimit(RLIMIT_NOFILE, &old);
  // The new connection takes the last descriptor on our side, so none is left to accept it with.
  std::vector<UniqueFd> fill;
  rlimit low{before.fd() + 8u, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (;;) {
    UniqueFd fd(dup(0));
    if (!fd) break;
    fill.push_back(std::move(fd));
  }
  fill.pop_back();
  RawClient waiting(server.port());
  waiting.Send("GET /late HTTP/1.1\r\nHost: x\r\n\r\n");
  timespec cpu_before{}, cpu_after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_before);
  std::this_thread::sleep_for(300ms);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_after);
  long used_us = (cpu_after.tv_sec - cpu_before.tv_sec) * 1'000'000 +
                 (cpu_after.tv_nsec - cpu_before.tv_nsec) / 1000;
  EXPECT_LT(used_us, 100'000);
  before.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(before.ReadAnswer().status, 200u);  // those who are in are served
  fill.clear();
  setrlimit(RLIMIT_NOFILE, &old);
  EXPECT_EQ(waiting.ReadAnswer().body, "GET /late ");  // and nobody was lost
}

TEST(Limits, HeaderValuesCannotBreakOut) {
  Handler handler = [](Exchange& exchange) -> Task<void> {
    Response response = Response::Text(200, "ok");
    response.headers.Add("X-A", "1\r\nSet-Cookie: evil\r\n\r\n<script>");
    response.headers.Add("X-B\r\nX-Evil", "1");
    response.headers.Add("Content-Length", "9999");
    response.headers.Add("Transfer-Encoding", "chunked");
    (void)co_await exchange.Send(response);
  };
  TestServer server(handler);
  RawClient client(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  auto answer = client.ReadAnswer();
  EXPECT_EQ(answer.body, "ok");
  EXPECT_EQ(answer.Header("Set-Cookie"), "");
  EXPECT_EQ(answer.Header("X-Evil"), "");
  EXPECT_EQ(answer.Header("X-A"), "1  Set-Cookie: evil    <script>");
  EXPECT_EQ(answer.Header("Content-Length"), "2");
  EXPECT_EQ(answer.Header("Transfer-Encoding"), "");
}

}  // namespace
}  // namespace caisson::http

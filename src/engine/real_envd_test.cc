// The engine and envd together, with nothing between them.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "engine/test_support.h"

namespace caisson::engine {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(RealEnvdTest, AnswersAsSoonAsTheSandboxIsCreated) {
  TempDir dir;
  TestEngine engine(TestConfig(dir));
  Spec spec = TestSpec(engine.config());
  spec.boot = R"({"sandboxId":"test"})";
  auto instance = engine.Create(spec);
  ASSERT_TRUE(instance) << instance.error().message();
  auto socket = engine.Dial(spec.id);
  ASSERT_TRUE(socket) << socket.error().message();
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(49983);
  inet_pton(AF_INET6, "::ffff:127.0.0.1", &address.sin6_addr);
  ASSERT_EQ(connect(socket->get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  std::string_view request = "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  ASSERT_GT(send(socket->get(), request.data(), request.size(), MSG_NOSIGNAL), 0);
  timeval limit{30, 0};
  setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  char answer[256];
  ssize_t n = recv(socket->get(), answer, sizeof(answer), 0);
  ASSERT_GT(n, 0);
  EXPECT_THAT(std::string(answer, static_cast<size_t>(n)), StartsWith("HTTP/1.1 204"));
}

TEST(RealEnvdTest, BootDataItCannotReadIsReported) {
  TempDir dir;
  TestEngine engine(TestConfig(dir));
  Spec spec = TestSpec(engine.config());
  spec.boot = "not json";
  auto failed = engine.Create(spec);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message(), HasSubstr("JSON"));
}

}  // namespace
}  // namespace caisson::engine

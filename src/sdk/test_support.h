// For tests: the real caisson-envd on this machine's loopback, and a client of it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <string>

#include "base/testing.h"
#include "envd/test_program.h"
#include "sdk/envd_client.h"

namespace caisson::sdk {

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(uint16_t port, std::string token) : port_(port), token_(std::move(token)) {}

  Task<Result<std::unique_ptr<http::ClientConnection>>> Connect() override {
    return http::ClientConnection::Connect(fmt::format("127.0.0.1:{}", port_),
                                           std::chrono::milliseconds(30'000));
  }
  http::Headers RequestHeaders() const override {
    return {{"Host", "localhost"}, {"X-Access-Token", token_}};
  }

 private:
  uint16_t port_;
  std::string token_;
};

class EnvdFixture : public ::testing::Test {
 protected:
  EnvdFixture()
      : port_(envd::FreePort()),
        program_({.config = boost::json::serialize(boost::json::object{{"sandboxId", "itest"},
                                                                       {"accessToken", "a token"},
                                                                       {"defaultUser", "root"},
                                                                       {"port", port_}})}) {
    EXPECT_EQ(program_.Answer(), "R");
  }

  EnvdClient Client(std::string token = "a token") {
    return EnvdClient(std::make_unique<LoopbackTransport>(port_, std::move(token)));
  }
  template <class T>
  T Await(Task<T> task) {
    return caisson::testing::Await(io_, std::move(task));
  }
  static Command Bash(std::string script) {
    Command command;
    command.argv = {"bash", "-c", std::move(script)};
    command.user = "root";
    command.timeout = std::chrono::seconds(60);
    return command;
  }

  asio::io_context io_{1};
  caisson::testing::TempDir dir_;
  uint16_t port_;
  envd::Program program_;
};

}  // namespace caisson::sdk

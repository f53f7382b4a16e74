// For tests: a frame on a real store, with users of every role.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "account/accounts.h"
#include "api/frame.h"
#include "base/testing.h"
#include "e2b/fake_exchange.h"

namespace caisson::api {

class FrameFixture : public ::testing::Test {
 protected:
  FrameFixture() { OpenStore(); }
  ~FrameFixture() override { EndServer(); }

  // A server process begins (again): what the store holds stays. Settings of `config_` that a test
  // wants different are set before. AddRoutes() is called with the new frame.
  void BeginServer() {
    keys_ = account::KeyRing::Open(dir_.path(), kAdminKey).value();
    accounts_ = std::make_unique<account::Accounts>(io_.get_executor(), *store_, keys_,
                                                    "the server's secret", config_);
    ASSERT_TRUE(Wait(accounts_->Start()));
    router_ = std::make_unique<http::Router>();
    frame_ = std::make_unique<Frame>(*router_, *store_, *accounts_, config_);
    frame_->CheckAnswers();
    AddRoutes(*frame_);
  }
  void EndServer() {
    if (!accounts_) return;
    testing::Await(io_, accounts_->Stop());
    frame_.reset();
    accounts_.reset();
  }
  virtual void AddRoutes(Frame& frame) = 0;

  void OpenStore() {
    store_ = store::OpenStore("sqlite:///" + (dir_ / "a.db"), io_.get_executor()).value();
  }
  template <class T>
  T Wait(Task<T> task) {
    return testing::Await(io_, std::move(task));
  }

  // The key of a new user.
  std::string KeyOf(const std::string& name, const std::string& role) {
    auto user = Wait(accounts_->AddUser({.name = name, .role = role}));
    EXPECT_TRUE(user) << user.error().message();
    return Wait(accounts_->AddKey(name, user->id, {})).value().text;
  }

  // Sends a request as the admin, or with the headers given instead. `body` is JSON text.
  http::Response Send(const std::string& method, const std::string& target,
                      const std::string& body = "",
                      http::Headers headers = {{"X-API-KEY", kAdminKey}}) {
    auto match = router_->Find(method, target.substr(0, target.find('?')));
    EXPECT_TRUE(match.handler) << method << " " << target;
    if (!match.handler) return {};
    if (!headers.Has("Content-Type")) headers.Set("Content-Type", "application/json");
    e2b::FakeExchange exchange(io_.get_executor(), method, target, body, std::move(headers));
    testing::Await(io_, (*match.handler)(exchange, match.params));
    EXPECT_TRUE(exchange.answer) << method << " " << target;
    return exchange.answer.value_or(http::Response());
  }
  // The same; checks the status and returns the body, null if it is empty.
  json::value Ask(unsigned status, const std::string& method, const std::string& target,
                  const std::string& body = "", const std::string& key = kAdminKey) {
    http::Response answer = Send(method, target, body, {{"X-API-KEY", key}});
    EXPECT_EQ(answer.status, status)
        << method << " " << target << " " << body << ": " << answer.body;
    if (answer.body.empty()) return nullptr;
    json::value value = json::parse(answer.body);
    if (answer.status >= 400) {
      EXPECT_TRUE(value.at("error").at("code").is_string());
    }
    return value;
  }

  static constexpr const char* kAdminKey = "e2b_0123456789abcdef0123456789abcdef01234567";
  asio::io_context io_;
  testing::TempDir dir_;
  Config config_;
  std::unique_ptr<store::Store> store_;
  account::KeyRing keys_;
  std::unique_ptr<account::Accounts> accounts_;
  std::unique_ptr<http::Router> router_;
  std::unique_ptr<Frame> frame_;
};

}  // namespace caisson::api

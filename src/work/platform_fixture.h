// For tests: what everything of the platform stands on, for real: a store with the users ann and
// bob, a log and an engine. They begin and end with each server process; the store stays.
#pragma once

#include <gtest/gtest.h>

#include "base/testing.h"
#include "events/log.h"
#include "flow/engine.h"
#include "store/account_rows.h"
#include "work/platform.h"

namespace caisson::work {

class PlatformTest : public ::testing::Test {
 protected:
  using Tx = store::Transaction;

  // Up here because its type is deduced: it has to be known where it is used.
  template <class T>
  T Wait(Task<T> task) {
    return testing::Await(io_, std::move(task));
  }
  template <class Job>
  auto Write(Job job) {
    return Wait(store_->Write(std::move(job)));
  }
  static Task<Status> Pause() {
    co_await SleepFor(std::chrono::milliseconds(5));
    co_return Status();
  }

  PlatformTest() {
    config_.flow_retry_min_ms = 1;
    config_.flow_retry_max_ms = 2;
    store_ = store::OpenStore("sqlite://" + (dir_ / "a.db"), io_.get_executor()).value();
    EXPECT_TRUE(Write([](Tx& tx) -> Status {
      TRY(tx.Insert(store::UserRow{.id = "ann", .name = "ann", .role = "member"}));
      return tx.Insert(store::UserRow{.id = "bob", .name = "bob", .role = "member"});
    }));
  }
  // At the end, by whoever derives from this: while everything that may use it is still there.
  void CloseStore() { EXPECT_TRUE(Wait(store_->Close())); }

  // The engine knows no runs yet and does not work.
  Platform BeginPlatform() {
    log_ = std::make_unique<events::Log>(io_.get_executor(), *store_, config_);
    EXPECT_TRUE(Wait(log_->Start()));
    engine_ = std::make_unique<flow::Engine>(io_.get_executor(), *store_, config_);
    return platform();
  }
  Platform platform() { return {*store_, *log_, *engine_, config_}; }

  testing::TempDir dir_;
  asio::io_context io_;
  Config config_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<events::Log> log_;
  std::unique_ptr<flow::Engine> engine_;
};

}  // namespace caisson::work

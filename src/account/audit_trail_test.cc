#include "account/audit_trail.h"

#include <gtest/gtest.h>

#include "base/testing.h"

namespace caisson::account {
namespace {

class AuditTrailTest : public ::testing::Test {
 protected:
  std::vector<std::string> Targets() {
    auto rows = testing::Await(io_, store_->Read([](store::Transaction& tx) {
      return tx.List(store::Select<store::AuditRow>().Order(&store::AuditRow::id));
    }));
    std::vector<std::string> targets;
    for (const store::AuditRow& row : rows.value()) targets.push_back(row.target);
    return targets;
  }

  testing::TempDir dir_;
  asio::io_context io_{1};
  std::unique_ptr<store::Store> store_ =
      store::OpenStore("sqlite:///" + (dir_ / "a.db"), io_.get_executor()).value();
};

TEST_F(AuditTrailTest, StopLeavesNothingUnwritten) {
  AuditTrail trail(io_.get_executor(), *store_);
  std::vector<std::string> added;
  for (int i = 0; i < 1000; ++i) {
    added.push_back(std::to_string(i));
    trail.Add(
        {.at = Now(), .actor_id = "ann", .action = "POST /sandboxes", .target = added.back()});
  }
  testing::Await(io_, trail.Stop());
  EXPECT_EQ(Targets(), added);
}

TEST_F(AuditTrailTest, WhatComesTooFastIsBounded) {
  AuditTrail trail(io_.get_executor(), *store_);
  for (int i = 0; i < 10'100; ++i) trail.Add({.at = Now(), .target = std::to_string(i)});
  testing::Await(io_, trail.Stop());
  EXPECT_EQ(Targets().size(), 10'000u);
  EXPECT_EQ(Targets().back(), "9999");
}

TEST_F(AuditTrailTest, WithNothingToWriteItStopsAtOnce) {
  AuditTrail trail(io_.get_executor(), *store_);
  testing::Await(io_, trail.Stop());
  EXPECT_TRUE(Targets().empty());
}

}  // namespace
}  // namespace caisson::account

// What may run in the platform's sandboxes, how fresh what is read of them is, and what happens at
// a quota.
#include <boost/asio/detached.hpp>

#include "work/sandboxes_fixture.h"

namespace caisson::work {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- reading -------------------------------------------------------------------------

TEST_F(SandboxesTest, WhatIsReadIsNeverOlderThanWhatWasWritten) {
  SandboxRow row = Made();
  auto status = [&] {
    std::string shown = Await(sandboxes_->Get("alice", row.id)).value().row.status;
    auto list = Await(sandboxes_->List({.owner_id = "alice"})).value();
    EXPECT_EQ(list.items.front().status, shown);
    return shown;
  };
  int asked = provider_.gets;
  EXPECT_EQ(status(), "running");
  EXPECT_TRUE(Await(sandboxes_->Pause("alice", row.id)));
  EXPECT_EQ(status(), "paused");
  EXPECT_TRUE(Await(sandboxes_->Resume("alice", row.id)));
  EXPECT_EQ(status(), "running");
  EXPECT_GE(provider_.gets, asked + 3) << "the provider is asked each time";
  // What another server of the same database writes.
  row = Rows().front();
  row.last_error = "somebody else's";
  Change(row);
  EXPECT_EQ(Await(sandboxes_->Get("alice", row.id)).value().row.last_error, "somebody else's");
  EXPECT_TRUE(Await(sandboxes_->Destroy("alice", row.id)));
  EXPECT_EQ(status(), "terminated");
}

// ---- quotas --------------------------------------------------------------------------

TEST_F(SandboxesTest, WithoutAWaitAQuotaRefusesAtOnce) {
  provider_.room = 0;
  auto made = Await(sandboxes_->Create(For("e1")));
  EXPECT_EQ(made.error().code(), Code::kResourceExhausted);
  EXPECT_EQ(provider_.creates, 1);
}

TEST_F(SandboxesTest, WithAWaitCreationsGetTheirTurn) {
  provider_.room = 1;
  SandboxRow first = Made("e1");
  std::vector<std::string> made;
  auto wait = [](Sandboxes& all, SandboxRequest request,
                 std::vector<std::string>& order) -> Task<void> {
    std::string holder = request.holder.id;
    auto row = co_await all.Create(std::move(request));
    order.push_back(row ? holder : row.error().message());
  };
  for (const char* holder : {"e2", "e3"})
    asio::co_spawn(io_, wait(*sandboxes_, Patient(holder, 60s), made), asio::detached);
  while (provider_.creates < 2) Pause();
  EXPECT_TRUE(made.empty());
  EXPECT_TRUE(Await(sandboxes_->Destroy("alice", first.id)));
  while (made.empty()) Pause();
  EXPECT_THAT(made, ElementsAre("e2"));
  provider_.room = 2;
  while (made.size() < 2) Pause();
  EXPECT_THAT(made, ElementsAre("e2", "e3"));
}

TEST_F(SandboxesTest, AWaitHasItsEnd) {
  provider_.room = 0;
  auto made = Await(sandboxes_->Create(Patient("e1", 1s)));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::kResourceExhausted);
  EXPECT_THAT(made.error().message(), HasSubstr("quota_wait_over"));
  EXPECT_LE(provider_.creates, 4) << "attempts are not a storm";
  config_.launcher_queue = 0;
  Begin();
  EXPECT_THAT(Await(sandboxes_->Create(Patient("e2", 1s))).error().message(),
              HasSubstr("wait for room"));
}

// ---- policy --------------------------------------------------------------------------

TEST_F(SandboxesTest, ThePolicyDecidesWhatMayRun) {
  config_.command_policy = "deny";
  config_.command_list = "rm, curl";
  Begin();
  SandboxRow row = Made();
  EXPECT_EQ(Execute(row.id, "echo ok && /bin/rm -rf x").error().code(), Code::kPermissionDenied);
  EXPECT_TRUE(Execute(row.id, "echo warm"));
  EXPECT_EQ(Operations().size(), 1u);
}

TEST(CommandPolicyTest, EachRoleHasItsOwn) {
  Config config;
  for (const char* role : {"member", "admin"})
    EXPECT_FALSE(CommandPolicy(config).Check(role, {"reboot"})) << "by default";
  config.command_policy = "allow, admin=off";
  config.command_list = "git";
  CommandPolicy policy(config);
  EXPECT_TRUE(policy.Check("admin", {"reboot"}));
  EXPECT_FALSE(policy.Check("member", {"ls"}));
  EXPECT_TRUE(policy.Check("member", {"git"}));
  config.command_policy = "member=deny";
  EXPECT_TRUE(CommandPolicy(config).Check("admin", {"git"}));
  EXPECT_FALSE(CommandPolicy(config).Check("member", {"git"}));
}

TEST(CommandPolicyTest, DeniesAndAllows) {
  Config config;
  using Argv = std::vector<std::string>;
  EXPECT_TRUE(CommandPolicy(config).Check("member", {"rm"}));
  config.command_list = "git, npm";
  config.command_policy = "deny";
  CommandPolicy deny(config);
  for (const Argv& argv : {Argv{"git"},
                           {"/usr/bin/git"},
                           {"env", "git"},
                           {"sh", "-c", "x;git y"},
                           {"bash", "-lc", "echo $(npm i)"}})
    EXPECT_FALSE(deny.Check("member", argv)) << argv.back();
  for (const Argv& argv : {Argv{"ls"}, {"sh", "-c", "echo legit"}})
    EXPECT_TRUE(deny.Check("member", argv));
  config.command_policy = "allow";
  CommandPolicy allow(config);
  for (const Argv& argv : {Argv{"git", "status"}, {"sh", "-c", "npm test"}})
    EXPECT_TRUE(allow.Check("member", argv)) << argv.back();
  for (const Argv& argv :
       {Argv{"ls"}, {"sh", "-c", "npm test; ls"}, {"sh", "-c", "ls"}, {"sh", "script"}})
    EXPECT_FALSE(allow.Check("member", argv)) << argv.back();
}

}  // namespace
}  // namespace caisson::work

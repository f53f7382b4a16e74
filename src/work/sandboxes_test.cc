// The rules of the work platform's sandboxes, on a fake provider and a real envd.
#include <boost/json.hpp>

#include "work/sandboxes_fixture.h"

namespace caisson::work {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// ---- renewing ------------------------------------------------------------------------

TEST_F(SandboxesTest, AFreshOneTakesThePlaceOfTheOld) {
  SandboxRow old = Made();
  std::string told;
  auto fresh = Await(sandboxes_->Renew("alice", old.id, [&](Transaction&, const SandboxRow& row) {
    told = row.id;
    return Status();
  }));
  ASSERT_TRUE(fresh) << fresh.error().message();
  EXPECT_NE(fresh->id, old.id);
  EXPECT_EQ(told, fresh->id);
  EXPECT_THAT(provider_.last_options.template_name, HasSubstr("snap-" + old.id));
  EXPECT_TRUE(provider_.snapshots.empty());
  EXPECT_THAT(stopped_, ElementsAre(old.id));
  EXPECT_EQ(provider_.sandboxes.size(), 1u);
  EXPECT_EQ(Made().id, fresh->id);
  auto ended = Await(sandboxes_->Get("alice", old.id)).value();
  EXPECT_EQ(ended.row.status, "terminated");
  EXPECT_THAT(ended.row.last_error, HasSubstr("goes on in " + fresh->id));
  caisson::testing::Await(io_, log_->Flush());
  for (const auto& event : Await(log_->Recent({}, 100)).value())
    EXPECT_EQ(event.execution_id, "e1");
  EXPECT_THAT(EventTypes(),
              ElementsAre("sandbox_created", "sandbox_created", "sandbox_terminated"));
}

TEST_F(SandboxesTest, ARenewalThatFailsLeavesTheOldOne) {
  SandboxRow old = Made();
  provider_.create_fails = Error(Code::kUnavailable, "full");
  EXPECT_FALSE(Await(sandboxes_->Renew("alice", old.id, nullptr)));
  provider_.create_fails.reset();
  auto refused = Await(sandboxes_->Renew("alice", old.id, [](Transaction&, const SandboxRow&) {
    return Status(Fail(Code::kAborted, "no"));
  }));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(provider_.snapshots.empty());
  EXPECT_EQ(Made().id, old.id);
  EXPECT_EQ(provider_.sandboxes.size(), 1u);
}

TEST_F(SandboxesTest, WhatAnInterruptedRenewalLeftIsReplaced) {
  SandboxRow old = Made();
  SandboxRow left = Made(Sandboxes::NextHolder("e1"));
  auto fresh = Await(sandboxes_->Renew("alice", old.id, nullptr));
  ASSERT_TRUE(fresh) << fresh.error().message();
  EXPECT_NE(fresh->id, left.id);
  EXPECT_EQ(provider_.sandboxes.size(), 1u);
  EXPECT_TRUE(provider_.sandboxes.contains(fresh->backend_id));
}

TEST_F(SandboxesTest, TheSnapshotOfAnInterruptedRenewalIsDropped) {
  SandboxRow old = Made();
  ASSERT_TRUE(Await(provider_.Snapshot("alice", old.backend_id, "renewal-" + old.id)));
  auto fresh = Await(sandboxes_->Renew("alice", old.id, nullptr));
  ASSERT_TRUE(fresh) << fresh.error().message();
  EXPECT_TRUE(provider_.snapshots.empty());
  // Also if nobody goes on.
  ASSERT_TRUE(Await(provider_.Snapshot("alice", fresh->backend_id, "renewal-" + fresh->id)));
  ASSERT_TRUE(Await(sandboxes_->Destroy("alice", fresh->id)));
  EXPECT_TRUE(provider_.snapshots.empty());
}

// ---- making --------------------------------------------------------------------------

TEST_F(SandboxesTest, OnePerHolder) {
  SandboxRow row = Made();
  EXPECT_EQ(row.status, "running");
  EXPECT_EQ(row.id, row.backend_id);
  EXPECT_EQ(provider_.last_options.metadata.at("caisson_installation"), "this server");
  EXPECT_EQ(Made().id, row.id);
  EXPECT_NE(Made("e2").id, row.id);
  EXPECT_EQ(provider_.creates, 2);
  EXPECT_EQ(provider_.sandboxes.size(), 2u);
  EXPECT_THAT(EventTypes(), ElementsAre("sandbox_created", "sandbox_created"));
}

TEST_F(SandboxesTest, AUserMayHaveMany) {
  EXPECT_NE(Made("").id, Made("").id);
  EXPECT_EQ(provider_.sandboxes.size(), 2u);
}

TEST_F(SandboxesTest, TwoRequestsForOneHolderAtOnceMakeOne) {
  provider_.create_takes = 20ms;
  std::optional<Result<SandboxRow>> first, second;
  TaskGroup group(io_.get_executor());
  for (auto* result : {&first, &second})
    group.Spawn("create",
                [](Sandboxes& all, SandboxRequest request,
                   std::optional<Result<SandboxRow>>& to) -> Task<void> {
                  to.emplace(co_await all.Create(std::move(request)));
                }(*sandboxes_, For("e1"), *result));
  EXPECT_TRUE(
      Await([](TaskGroup& of) -> Task<Result<bool>> { co_return co_await of.Join(30s); }(group))
          .value());
  ASSERT_TRUE(*first && *second);
  EXPECT_EQ((*first)->id, (*second)->id);
  EXPECT_EQ(provider_.creates, 1);
}

TEST_F(SandboxesTest, OneOfAnotherProviderHasAnIdOfItsOwn) {
  provider_.name_ = "e2b";
  SandboxRow row = Made();
  EXPECT_NE(row.id, row.backend_id);
  EXPECT_TRUE(Await(sandboxes_->Get("alice", row.id)));
}

TEST_F(SandboxesTest, AFailedCreateLeavesNothing) {
  provider_.create_fails = Error(Code::kResourceExhausted, "your quota is used up");
  auto failed = Await(sandboxes_->Create(For("e1")));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kResourceExhausted);
  ASSERT_EQ(Rows().size(), 1u);
  EXPECT_EQ(Rows()[0].status, "error");
  EXPECT_EQ(Rows()[0].last_error, "your quota is used up");
  EXPECT_TRUE(Rows()[0].destroyed_at);
  provider_.create_fails.reset();
  EXPECT_EQ(Made().status, "running");
}

TEST_F(SandboxesTest, TheAgentAndTheTaskMustBeTheOwners) {
  store::AgentRow agent{.id = "a1", .owner_id = "bob", .name = "x"};
  EXPECT_TRUE(Await(store_->Write([agent](Transaction& write) { return write.Insert(agent); })));
  for (const char* id : {"a1", "a2"}) {
    SandboxRequest request = For("e1");
    request.holder.agent_id = id;
    EXPECT_EQ(Await(sandboxes_->Create(request)).error().code(), Code::kNotFound);
  }
  EXPECT_TRUE(Rows().empty());
  EXPECT_EQ(provider_.creates, 0);
}

TEST_F(SandboxesTest, ACreateThatTimedOutButWorkedLeavesNothing) {
  provider_.create_fails = Error(Code::kDeadlineExceeded, "it took too long");
  provider_.create_fails_late = true;
  EXPECT_FALSE(Await(sandboxes_->Create(For("e1"))));
  EXPECT_TRUE(provider_.sandboxes.empty());
  EXPECT_TRUE(Rows()[0].destroyed_at);
}

TEST_F(SandboxesTest, ACreateWhoseRowCannotBeWrittenLeavesNothing) {
  provider_.hold_create = true;
  std::optional<Result<SandboxRow>> result;
  TaskGroup group(io_.get_executor());
  group.Spawn("create",
              [](Sandboxes& all, SandboxRequest request,
                 std::optional<Result<SandboxRow>>& to) -> Task<void> {
                to.emplace(co_await all.Create(std::move(request)));
              }(*sandboxes_, For("e1"), result));
  while (provider_.creates == 0) io_.run_one();
  // Somebody ends the row meanwhile.
  EXPECT_TRUE(
      Await(store_->Write([](Transaction& write) { return write.Delete(Select<SandboxRow>()); })));
  provider_.hold_create = false;
  while (!result) io_.run_one();
  EXPECT_FALSE(*result);
  EXPECT_TRUE(provider_.sandboxes.empty());
}

TEST_F(SandboxesTest, ACanceledCreateIsFinished) {
  provider_.hold_create = true;
  TaskGroup group(io_.get_executor());
  group.Spawn("create", [](Sandboxes& all, SandboxRequest request) -> Task<void> {
    (void)co_await all.Create(std::move(request));
  }(*sandboxes_, For("e1")));
  while (provider_.creates == 0) io_.run_one();
  group.Cancel();
  provider_.hold_create = false;
  EXPECT_EQ(Made().status, "running");
  EXPECT_EQ(provider_.creates, 1);
}

TEST_F(SandboxesTest, APausedOneIsResumedForItsHolder) {
  SandboxRow row = Made();
  ASSERT_TRUE(Await(sandboxes_->Pause("alice", row.id)));
  EXPECT_THAT(stopped_, ElementsAre(row.id));
  EXPECT_EQ(Rows()[0].status, "paused");
  EXPECT_EQ(Made().id, row.id);
  EXPECT_EQ(Rows()[0].status, "running");
  EXPECT_EQ(provider_.sandboxes.at(row.id).state, "running");
}

TEST_F(SandboxesTest, ALostOneIsReplaced) {
  SandboxRow row = Made();
  provider_.sandboxes.clear();
  SandboxRow next = Made();
  EXPECT_NE(next.id, row.id);
  EXPECT_EQ(Await(sandboxes_->Get("alice", row.id))->row.last_error, "gone");
}

// ---- looking -------------------------------------------------------------------------

TEST_F(SandboxesTest, GetAsksTheProviderAndWakesNothing) {
  SandboxRow row = Made();
  ASSERT_TRUE(Await(sandboxes_->Pause("alice", row.id)));
  for (int i = 0; i < 2; ++i) {
    auto state = Await(sandboxes_->Get("alice", row.id));
    ASSERT_TRUE(state) << state.error().message();
    EXPECT_EQ(state->backend_state, "paused");
    EXPECT_EQ(state->row.status, "paused");
  }
  EXPECT_EQ(provider_.resumes, 0);
  EXPECT_EQ(Await(sandboxes_->Get("bob", row.id)).error().code(), Code::kNotFound);
  EXPECT_TRUE(Await(sandboxes_->Get("", row.id)));
  provider_.down = Error(Code::kUnavailable, "it is down");
  auto state = Await(sandboxes_->Get("alice", row.id));
  EXPECT_EQ(state->backend_state, "unknown");
  EXPECT_EQ(state->row.last_error, "it is down");
  provider_.down.reset();
  provider_.sandboxes.clear();
  state = Await(sandboxes_->Get("alice", row.id));
  EXPECT_EQ(state->backend_state, "terminated");
  EXPECT_EQ(state->row.status, "terminated");
  EXPECT_EQ(state->row.last_error, "gone");
  EXPECT_TRUE(state->row.destroyed_at);
}

TEST_F(SandboxesTest, ListsAreFilteredAndPaged) {
  for (int i = 0; i < 5; ++i) Made(fmt::format("e{}", i));
  ASSERT_TRUE(Await(sandboxes_->Destroy("alice", Made("e0").id)));
  auto list = Await(sandboxes_->List({.owner_id = "alice", .ended = false, .limit = 3}));
  EXPECT_EQ(list->total, 4);
  EXPECT_EQ(list->items.size(), 3u);
  EXPECT_EQ(list->items[0].holder_id, "e4");
  list = Await(sandboxes_->List({.owner_id = "alice", .ended = false, .limit = 3, .offset = 3}));
  EXPECT_EQ(list->items.size(), 1u);
  EXPECT_EQ(Await(sandboxes_->List({.owner_id = "bob"}))->total, 0);
  EXPECT_EQ(Await(sandboxes_->List({.status = "terminated"}))->total, 1);
  EXPECT_EQ(Await(sandboxes_->List({.holder_id = "e3"}))->total, 1);
}

TEST_F(SandboxesTest, ASandboxOfTheE2bApiGetsItsRowWhenItIsUsed) {
  auto info = Await(provider_.Create({.owner_id = "alice"}));
  EXPECT_EQ(Await(sandboxes_->Get("bob", info->id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Await(sandboxes_->Get("alice", info->id)).error().code(), Code::kNotFound);
  EXPECT_TRUE(Rows().empty());
  EXPECT_EQ(Execute(info->id, "echo hi")->result.stdout_text, "hi\n");
  ASSERT_EQ(Rows().size(), 1u);
  EXPECT_EQ(Rows()[0].holder_kind, "user");
}

// ---- changing ------------------------------------------------------------------------

TEST_F(SandboxesTest, DestroyIsIdempotentAndKeepsItsTime) {
  SandboxRow row = Made();
  ASSERT_TRUE(Await(sandboxes_->Destroy("alice", row.id)));
  auto first = Rows()[0];
  EXPECT_EQ(first.status, "terminated");
  ASSERT_TRUE(first.destroyed_at);
  ASSERT_TRUE(Await(sandboxes_->Destroy("alice", row.id)));
  EXPECT_EQ(Rows()[0].destroyed_at, first.destroyed_at);
  EXPECT_EQ(provider_.kills, 1);
  EXPECT_EQ(Await(sandboxes_->Destroy("alice", "nobody")).error().code(), Code::kNotFound);
  EXPECT_EQ(Await(sandboxes_->Destroy("bob", row.id)).error().code(), Code::kNotFound);
  EXPECT_THAT(EventTypes(), ElementsAre("sandbox_created", "sandbox_terminated"));
}

TEST_F(SandboxesTest, ADestroyThatCannotReachTheProviderIsFinishedLater) {
  SandboxRow row = Made();
  provider_.down = Error(Code::kUnavailable, "the network is down");
  EXPECT_EQ(Await(sandboxes_->Destroy("alice", row.id)).error().code(), Code::kUnavailable);
  EXPECT_EQ(Rows()[0].status, "terminating");
  EXPECT_EQ(Execute(row.id, "true").error().code(), Code::kFailedPrecondition);
  provider_.down.reset();
  ASSERT_TRUE(Await(sandboxes_->Reconcile()));
  EXPECT_EQ(Rows()[0].status, "terminated");
  EXPECT_TRUE(provider_.sandboxes.empty());
}

TEST_F(SandboxesTest, RowsAreComparedWithTheProviderByTheClock) {
  config_.reconcile_interval_s = 1;
  Begin();
  ASSERT_TRUE(Await(sandboxes_->Start()));
  Made();
  provider_.sandboxes.clear();  // it ended, and nobody told us
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (Rows()[0].status != "terminated" && std::chrono::steady_clock::now() < deadline)
    caisson::testing::Await(io_, SleepFor(std::chrono::milliseconds(50)));
  EXPECT_EQ(Rows()[0].status, "terminated");
}

TEST_F(SandboxesTest, AFailedPauseLeavesItRunning) {
  SandboxRow row = Made();
  provider_.pause_fails = Error(Code::kUnavailable, "the disk is full");
  EXPECT_FALSE(Await(sandboxes_->Pause("alice", row.id)));
  EXPECT_EQ(Rows()[0].status, "running");
  EXPECT_EQ(Execute(row.id, "echo on")->result.stdout_text, "on\n");
}

// ---- commands and files ----------------------------------------------------------------

TEST_F(SandboxesTest, EveryCommandIsWrittenDownAndTold) {
  log_->redactor().Add("hunter2-secret");
  SandboxRow row = Made();
  auto done = Execute(row.id, "echo a hunter2-secret; echo b >&2; exit 4");
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(done->result.exit_code, 4);
  ASSERT_EQ(Operations().size(), 1u);
  GitOperationRow operation = Operations()[0];
  EXPECT_EQ(operation.id, done->operation_id);
  EXPECT_EQ(operation.operation, "execute");
  EXPECT_EQ(operation.status, "failed");
  EXPECT_EQ(operation.exit_code, 4);
  EXPECT_EQ(operation.sandbox_id, row.id);
  for (const std::string& text : {operation.command, operation.output_head, operation.output_tail})
    EXPECT_THAT(text, Not(HasSubstr("hunter2"))) << text;
  EXPECT_THAT(operation.output_tail, HasSubstr("b\n"));
  EXPECT_THAT(EventTypes(), ElementsAre("sandbox_created", "command_output", "command_output"));
  auto told = Await(log_->Recent({}, 10));
  for (const auto& event : told.value()) EXPECT_THAT(event.data, Not(HasSubstr("hunter2")));
  EXPECT_GT(Rows()[0].last_used_at, row.last_used_at);
}

TEST_F(SandboxesTest, LongOutputKeepsItsBeginningAndItsEnd) {
  SandboxRow row = Made();
  ASSERT_TRUE(
      Execute(row.id, "echo first; head -c 300000 /dev/zero | tr '\\0' x; echo; echo last"));
  GitOperationRow operation = Operations()[0];
  EXPECT_THAT(operation.output_head, ::testing::StartsWith("first\n"));
  EXPECT_THAT(operation.output_tail, ::testing::EndsWith("last\n"));
  EXPECT_LE(operation.output_head.size() + operation.output_tail.size(), 8'000u);
}

TEST_F(SandboxesTest, ACommandWhoseCallerGoesAwayEndsAndSaysSo) {
  SandboxRow row = Made();
  TaskGroup group(io_.get_executor());
  Sandboxes::Execution execution{.command = Bash("echo ready; sleep 300")};
  execution.command.on_output = [&](sdk::Stream, std::string_view) { group.Cancel(); };
  group.Spawn("execute",
              [](Sandboxes& all, std::string id, Sandboxes::Execution what) -> Task<void> {
                (void)co_await all.Execute("alice", std::move(id), std::move(what));
              }(*sandboxes_, row.id, std::move(execution)));
  EXPECT_TRUE(
      Await([](TaskGroup& of) -> Task<Result<bool>> { co_return co_await of.Join(60s); }(group))
          .value());
  // Killed, and then reaped; written down after that.
  for (int i = 0; i < 3000 && !Await(Client().ListProcesses())->empty(); ++i) Pause();
  EXPECT_TRUE(Await(Client().ListProcesses())->empty());
  for (int i = 0; i < 3000 && Operations()[0].status == "started"; ++i) Pause();
  EXPECT_EQ(Operations()[0].error_type, "canceled");
}

TEST_F(SandboxesTest, OnlyOneThatRunsTakesCommands) {
  SandboxRow row = Made();
  ASSERT_TRUE(Await(sandboxes_->Pause("alice", row.id)));
  auto refused = Execute(row.id, "true");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().message(), HasSubstr("not_running"));
  ASSERT_TRUE(Await(sandboxes_->Resume("alice", row.id)));
  provider_.sandboxes.clear();
  EXPECT_EQ(Execute(row.id, "true").error().code(), Code::kNotFound);
  EXPECT_EQ(Rows()[0].status, "terminated");
}

TEST_F(SandboxesTest, ThatOfASessionIsWokenByWhoeverUsesIt) {
  SandboxRequest request = For("s1");
  request.holder.kind = "session";
  SandboxRow row = Await(sandboxes_->Create(request)).value();
  ASSERT_TRUE(Await(sandboxes_->Pause("alice", row.id)));
  auto first = Execute(row.id, "echo awake");
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(first->result.stdout_text, "awake\n");
  provider_.sandboxes[row.backend_id].state = "paused";  // nobody told us
  EXPECT_TRUE(Execute(row.id, "true"));
  EXPECT_EQ(provider_.resumes, 2);
  EXPECT_EQ(Rows()[0].status, "running");
}

struct Bytes {
  std::string left;
  Task<Result<std::string>> Next() { co_return std::exchange(left, {}); }
};
Task<Status> Keep(std::string& to, std::string_view piece) {
  to += piece;
  co_return Status();
}

TEST_F(SandboxesTest, FilesGoInAndOutUpToTheLimit) {
  config_.file_max_bytes = 100;
  Begin();
  SandboxRow row = Made();
  Bytes small{"some text"}, large{std::string(101, 'x')};
  ASSERT_TRUE(Await(sandboxes_->Upload("alice", row.id, dir_ / "f", [&] { return small.Next(); })));
  std::string got;
  auto keep = [&](std::string_view piece) { return Keep(got, piece); };
  ASSERT_TRUE(Await(sandboxes_->Download("alice", row.id, dir_ / "f", keep)));
  EXPECT_EQ(got, "some text");
  Status refused =
      Await(sandboxes_->Upload("alice", row.id, dir_ / "g", [&] { return large.Next(); }));
  EXPECT_EQ(refused.error().code(), Code::kOutOfRange);
  refused = Await(sandboxes_->Download("alice", row.id, dir_ / "g", keep));
  EXPECT_EQ(refused.error().code(), Code::kNotFound);
  EXPECT_THAT(refused.error().message(), HasSubstr("file_not_found"));
  EXPECT_TRUE(Await(Client().WriteFile(dir_ / "h", std::string(101, 'x'))));
  EXPECT_EQ(Await(sandboxes_->Download("alice", row.id, dir_ / "h", keep)).error().code(),
            Code::kOutOfRange);
  EXPECT_EQ(Await(sandboxes_->ListFiles("alice", row.id, dir_.path(), 1))->size() > 1, true);
  EXPECT_EQ(Await(sandboxes_->ListFiles("alice", row.id, dir_ / "no", 1)).error().code(),
            Code::kNotFound);
}

// ---- care ----------------------------------------------------------------------------

TEST_F(SandboxesTest, ReconcilingKillsWhatNobodyKnows) {
  SandboxRow row = Made();
  std::map<std::string, std::string> ours = {{"caisson_row", "new-forgotten"},
                                             {"caisson_installation", "this server"}};
  auto orphan = Await(provider_.Create({.owner_id = "bob", .metadata = ours}));
  ours["caisson_installation"] = "another server";
  auto foreign = Await(provider_.Create({.owner_id = "bob", .metadata = ours}));
  auto of_a_user = Await(provider_.Create({.owner_id = "bob"}));
  ASSERT_TRUE(Await(sandboxes_->Start()));
  EXPECT_FALSE(provider_.sandboxes.contains(orphan->id));
  for (const auto& id : {row.id, foreign->id, of_a_user->id})
    EXPECT_TRUE(provider_.sandboxes.contains(id));
}

TEST_F(SandboxesTest, ReconcilingFinishesWhatACrashInterrupted) {
  SandboxRow gone = Made("e1"), paused = Made("e2"), pausing = Made("e3");
  provider_.sandboxes.erase(gone.id);
  provider_.sandboxes[paused.id].state = "paused";
  pausing.status = "pausing";
  Change(pausing);
  // The server died after the provider had made it and before the row said so.
  SandboxRow creating = gone;
  creating.id = "new-1";
  creating.backend_id = "";
  creating.holder_id = "e4";
  creating.status = "creating";
  ASSERT_TRUE(
      Await(store_->Write([creating](Transaction& write) { return write.Insert(creating); })));
  auto half = Await(provider_.Create(
      {.owner_id = "alice",
       .metadata = {{"caisson_row", "new-1"}, {"caisson_installation", "this server"}}}));
  Begin();
  ASSERT_TRUE(Await(sandboxes_->Start()));
  std::map<std::string, SandboxRow> rows;
  for (const SandboxRow& row : Rows()) rows[row.holder_id] = row;
  EXPECT_EQ(rows["e1"].status, "terminated");
  EXPECT_EQ(rows["e1"].last_error, "gone");
  EXPECT_EQ(rows["e2"].status, "paused");
  EXPECT_EQ(rows["e3"].status, "running");
  EXPECT_EQ(rows["e4"].status, "error");
  EXPECT_TRUE(rows["e4"].destroyed_at);
  EXPECT_FALSE(provider_.sandboxes.contains(half->id));
}

TEST_F(SandboxesTest, AProviderThatIsDownDoesNotKeepTheServerFromStarting) {
  SandboxRow row = Made();
  provider_.down = Error(Code::kUnavailable, "it is down");
  EXPECT_TRUE(Await(sandboxes_->Start()));
  EXPECT_FALSE(Rows()[0].destroyed_at);
}

TEST_F(SandboxesTest, OldOnesAreEnded) {
  SandboxRow old = Made("e1"), young = Made("e2");
  old.created_at = Now() - 25h;
  Change(old);
  auto found = Await(sandboxes_->CleanUpStale(/*dry_run=*/true));
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].id, old.id);
  EXPECT_EQ(provider_.sandboxes.size(), 2u);
  EXPECT_EQ(Await(sandboxes_->CleanUpStale(false))->size(), 1u);
  EXPECT_EQ(provider_.sandboxes.size(), 1u);
  EXPECT_TRUE(provider_.sandboxes.contains(young.id));
}

TEST_F(SandboxesTest, OldOnesThatArePutAwayStay) {
  for (const char* kind : {"user", "build", "session", "task"}) {
    SandboxRow row = Made(kind);
    row.holder_kind = kind;
    row.created_at = Now() - 25h;
    row.status = "paused";
    Change(row);
  }
  auto found = Await(sandboxes_->CleanUpStale(/*dry_run=*/true));
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].holder_kind, "task");
}

TEST_F(SandboxesTest, ASandboxThatMissesTwoChecksIsAnError) {
  SandboxRow row = Made();
  caisson::testing::Await(io_, sandboxes_->CheckHealth());
  EXPECT_EQ(Rows()[0].status, "running");
  provider_.down = Error(Code::kUnavailable, "it does not answer");
  caisson::testing::Await(io_, sandboxes_->CheckHealth());
  EXPECT_EQ(Rows()[0].status, "running");
  caisson::testing::Await(io_, sandboxes_->CheckHealth());
  EXPECT_EQ(Rows()[0].status, "error");
  EXPECT_EQ(Rows()[0].last_error, "it does not answer");
  provider_.down.reset();
  caisson::testing::Await(io_, sandboxes_->CheckHealth());
  EXPECT_EQ(Rows()[0].status, "running");
  provider_.sandboxes.clear();
  caisson::testing::Await(io_, sandboxes_->CheckHealth());
  EXPECT_EQ(Rows()[0].status, "terminated");
}

}  // namespace
}  // namespace caisson::work

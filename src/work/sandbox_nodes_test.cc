// Sandboxes of another server of the same database: they are left alone, and told about.
#include "work/run_home.h"
#include "work/sandboxes_fixture.h"

namespace caisson::work {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SandboxNodesTest : public SandboxesTest {
 protected:
  // One that the provider of this server does not know.
  SandboxRow MadeElsewhere() {
    SandboxRow row = Made();
    provider_.sandboxes.clear();
    row.node = "other";
    Change(row);
    return row;
  }
  SandboxRow Row() { return Rows().front(); }
};

TEST_F(SandboxNodesTest, NobodyElseLooksAfterThem) {
  config_.task_sandbox_timeout_s = 0;  // all are old
  Begin();
  SandboxRow row = MadeElsewhere();
  EXPECT_TRUE(Await(sandboxes_->Reconcile()));
  caisson::testing::Await(io_, sandboxes_->CheckHealth());
  EXPECT_THAT(Await(sandboxes_->CleanUpStale(/*dry_run=*/false)).value(), IsEmpty());
  EXPECT_EQ(Await(sandboxes_->Get("alice", row.id))->backend_state, "unknown");
  EXPECT_EQ(Row().status, "running");
  EXPECT_FALSE(Row().destroyed_at);
}

TEST_F(SandboxNodesTest, WhoeverNeedsOneIsToldWhereItIs) {
  SandboxRow row = MadeElsewhere();
  for (const Status& refused :
       {Await(sandboxes_->Pause("alice", row.id)), Await(sandboxes_->Resume("alice", row.id)),
        Status(tl::unexpect, Execute(row.id, "true").error()),
        Status(tl::unexpect, Await(sandboxes_->Create(For("e1"))).error())}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kUnavailable);
    EXPECT_TRUE(IsElsewhere(refused.error()));
    EXPECT_THAT(refused.error().message(), HasSubstr("at the server other"));
  }
  EXPECT_EQ(Execute("nothing", "true").error().code(), Code::kNotFound);
  EXPECT_EQ(Await(sandboxes_->Pause("bob", row.id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Row().status, "running");
}

TEST_F(SandboxNodesTest, OneIsEndedByTheServerThatHasIt) {
  SandboxRow row = MadeElsewhere();
  int kills = provider_.kills;
  EXPECT_TRUE(Await(sandboxes_->Destroy("alice", row.id)));
  EXPECT_EQ(Row().status, "terminating");
  EXPECT_EQ(provider_.kills, kills);
  EXPECT_TRUE(Await(sandboxes_->Reconcile()));
  EXPECT_EQ(Row().status, "terminating");
  row = Row();
  row.node = "";  // as that server sees it
  Change(row);
  EXPECT_TRUE(Await(sandboxes_->Reconcile()));
  EXPECT_EQ(Row().status, "terminated");
  EXPECT_TRUE(Row().destroyed_at);
}

TEST_F(SandboxNodesTest, ARunIsAtHomeWhereItsSandboxIs) {
  SandboxRow row = MadeElsewhere();
  flow::Definition definition;
  SetHome(definition, *log_, [](Transaction& tx, const store::RunRow& run) {
    return SandboxesOf(tx, "task", {run.execution_id});
  });
  auto home = [&](std::string execution) {
    store::RunRow run{.id = "r1", .execution_id = std::move(execution)};
    return Await(store_->Write([&, run](Transaction& tx) { return definition.home(tx, run); }))
        .value();
  };
  EXPECT_EQ(home("e1"), "other");
  EXPECT_EQ(home("e2"), "");
  Made("e2");
  EXPECT_EQ(home("e2"), "") << "every server reaches it";
  store::RunRow run{.id = "r1", .execution_id = "e1"};
  EXPECT_TRUE(
      Await(store_->Write([&](Transaction& tx) { return definition.leave(tx, run, "somebody"); })));
  EXPECT_EQ(home("e1"), "other") << "only what the lost one had is given up";
  EXPECT_TRUE(
      Await(store_->Write([&](Transaction& tx) { return definition.leave(tx, run, "other"); })));
  EXPECT_EQ(home("e1"), "");
  auto ended = Await(sandboxes_->Get("alice", row.id)).value().row;
  EXPECT_EQ(ended.status, "terminated");
  EXPECT_EQ(ended.last_error, "its server is lost: other");
  EXPECT_THAT(EventTypes(),
              ElementsAre("sandbox_created", "sandbox_created", "sandbox_terminated"));
}

}  // namespace
}  // namespace caisson::work

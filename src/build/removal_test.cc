#include "build/removal.h"

#include "build/build_fixture.h"

namespace caisson::build {
namespace {

using Changes = std::vector<FileChange>;

class RemovalTest : public BuildTest {
 protected:
  explicit RemovalTest(std::function<void(Config&)> configure = {}) : BuildTest(configure) {}

  BuildRow Ready(const std::string& parent_id = "", const std::string& project = "shop") {
    BuildRow row = Build({.project = project,
                          .parent_id = parent_id,
                          .files = Changes{{.path = "index.html", .new_content = "<h1>one</h1>"}}});
    EXPECT_EQ(row.state, "ready") << row.error_message;
    return row;
  }
  Status Delete(const std::string& id) { return Wait(removals_->Delete("ann", id)); }
  int64_t Kept(const std::string& id) {
    using store::BuildFileRow, store::BuildLogRow;
    return Write([id](Tx& tx) -> Result<int64_t> {
             TRY_ASSIGN(int64_t files,
                        tx.Count(store::Select<BuildFileRow>().Eq(&BuildFileRow::build_id, id)));
             TRY_ASSIGN(int64_t lines,
                        tx.Count(store::Select<BuildLogRow>().Eq(&BuildLogRow::build_id, id)));
             return files + lines;
           })
        .value();
  }
};

TEST_F(RemovalTest, TakesEverythingButWhatIsCounted) {
  BuildRow first = Ready();
  EXPECT_GT(Kept(first.id), 0);
  EXPECT_EQ(Wait(removals_->Delete("bob", first.id)).error().code(), Code::kNotFound);
  ASSERT_TRUE(Delete(first.id));
  EXPECT_EQ(Wait(builds_->Get("ann", first.id)).error().code(), Code::kNotFound);
  EXPECT_EQ(Wait(builds_->List("ann", {}))->total, 0);
  EXPECT_EQ(Kept(first.id), 0);
  EXPECT_TRUE(workbench_.sandboxes.empty());
  EXPECT_FALSE(workbench_.snapshots.contains(first.snapshot_id));
  EXPECT_EQ(DataOf("build.deleted", first.id).size(), 1u);
  EXPECT_EQ(Delete(first.id).error().code(), Code::kNotFound);
  BuildRow second = Ready();
  EXPECT_EQ(second.number, 2);
  EXPECT_EQ(Wait(builds_->Get("ann", second.id))->usage.used, 2);
  EXPECT_EQ(Wait(builds_->Rollback("ann", second.id, "build_v0_1")).error().code(),
            Code::kNotFound);
}

TEST_F(RemovalTest, LeavesTheSandboxToTheVersionThatIsShownThere) {
  BuildRow first = Ready(), second = Ready(first.id);
  ASSERT_EQ(first.sandbox_id, second.sandbox_id);
  ASSERT_TRUE(Delete(first.id));
  EXPECT_TRUE(workbench_.sandboxes.contains(second.sandbox_id));
  EXPECT_EQ(Wait(builds_->GetChangeRequest("ann", second.id)).error().code(), Code::kNotFound);
  ASSERT_TRUE(Delete(second.id));
  EXPECT_TRUE(workbench_.sandboxes.empty());
}

TEST_F(RemovalTest, WhatIsNeededStays) {
  BuildRow first = Ready();
  workbench_.opens_together = 1'000;  // it waits for its sandbox
  auto next = Create({.parent_id = first.id,
                      .files = Changes{{.path = "index.html", .new_content = "<h1>two</h1>"}}});
  ASSERT_TRUE(next);
  EXPECT_EQ(Delete(first.id).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Delete(next->row.id).error().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(Wait(builds_->Cancel("ann", next->row.id, "")));
  EXPECT_EQ(Await(next->row.id).state, "failed");
  EXPECT_TRUE(Delete(next->row.id));
  EXPECT_TRUE(Delete(first.id));
}

TEST_F(RemovalTest, WhatCouldNotBeDoneIsDoneLater) {
  BuildRow row = Ready();
  workbench_.drop_fails = Error(Code::kUnavailable, "not now");
  ASSERT_TRUE(Delete(row.id));
  EXPECT_TRUE(workbench_.snapshots.contains(row.snapshot_id));
  EXPECT_EQ(Wait(builds_->Get("ann", row.id)).error().code(), Code::kNotFound);
  workbench_.drop_fails.reset();
  EndServer();
  BeginServer();
  ASSERT_TRUE(Wait(previews_->Care()));
  EXPECT_FALSE(workbench_.snapshots.contains(row.snapshot_id));
  EXPECT_EQ(Row(row.id).removal, "done");
  EXPECT_EQ(Kept(row.id), 0);
}

TEST_F(RemovalTest, AFailedBuildLeavesNoSnapshot) {
  BuildRow first = Ready();
  workbench_.results["false"] = {{.exit_code = 1}};
  NewBuild change{.parent_id = first.id,
                  .files = Changes{{.path = "index.html", .new_content = "<h1>two</h1>"}}};
  change.options["checks"] = json::array{"false"};
  auto made = Create(change);
  // As if a server had died when it was made and the row did not know it.
  workbench_.snapshots["lost"] = {};
  workbench_.snapshot_of[made->row.id] = "lost";
  EXPECT_EQ(Await(made->row.id).state, "failed");
  EXPECT_FALSE(workbench_.snapshots.contains("lost"));
  EXPECT_TRUE(workbench_.snapshots.contains(first.snapshot_id));
}

class RetentionTest : public RemovalTest {
 protected:
  RetentionTest() : RemovalTest([](Config& config) { config.build_keep_versions = 2; }) {}
};

TEST_F(RetentionTest, TheNewestVersionsOfEachProjectStay) {
  std::vector<BuildRow> rows = {Ready()};
  for (int i = 0; i < 3; ++i) rows.push_back(Ready(rows.back().id));
  BuildRow other = Ready("", "other");
  BuildRow shown = Ready("", "third");
  AddSandboxRow(shown.sandbox_id, "running");
  for (int i = 0; i < 2; ++i) Ready("", "third");
  ASSERT_TRUE(Wait(removals_->Care()));
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(Row(rows[i].id).removal, i < 2 ? "done" : "") << i;
  EXPECT_EQ(Row(other.id).removal, "");
  EXPECT_EQ(Row(shown.id).removal, "");  // somebody can look at it
  EXPECT_TRUE(workbench_.sandboxes.contains(rows.back().sandbox_id));
}

}  // namespace
}  // namespace caisson::build

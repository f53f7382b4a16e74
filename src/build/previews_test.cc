#include "build/previews.h"

#include "build/build_fixture.h"

namespace caisson::build {
namespace {

using Changes = std::vector<FileChange>;

class PreviewsTest : public BuildTest {
 protected:
  BuildRow Ready() {
    BuildRow row = Build({.files = Changes{{.path = "index.html", .new_content = "<h1>one</h1>"}}});
    EXPECT_EQ(row.state, "ready") << row.error_message;
    AddSandboxRow(row.sandbox_id, "running");
    return row;
  }
  void SetStatus(const std::string& sandbox_id, const std::string& status) {
    using Row = store::WorkSandboxRow;
    ASSERT_TRUE(Write([=](Tx& tx) {
      return tx.Set(store::Select<Row>().Eq(&Row::id, sandbox_id),
                    {store::Assign(&Row::status, status)});
    }));
  }
  std::string StateOf(const std::string& id) {
    return Wait(builds_->Get("ann", id))->preview.state;
  }
  void SetWindow(const std::string& id, std::chrono::seconds left) {
    ASSERT_TRUE(Write([=](Tx& tx) -> Status {
      TRY_ASSIGN(BuildRow row, tx.Need<BuildRow>(id, "build"));
      row.viewing_until = Now() + left;
      return tx.Update(row);
    }));
  }
};

TEST_F(PreviewsTest, TheStateFollowsTheSandbox) {
  BuildRow row = Ready();
  EXPECT_EQ(StateOf(row.id), "active");
  for (auto [status, state] : {std::pair{"paused", "paused"},
                               {"pausing", "paused"},
                               {"resuming", "resuming"},
                               {"error", "error"}}) {
    SetStatus(row.sandbox_id, status);
    EXPECT_EQ(StateOf(row.id), state);
  }
}

TEST_F(PreviewsTest, WhatIsDoneWithItNowIsToldAsLongAsItIsDone) {
  BuildRow row = Ready();
  {
    Attention check(builds_->attentions(), row.id, "checking");
    EXPECT_EQ(StateOf(row.id), "checking");
    EXPECT_EQ(Wait(builds_->List("ann", {}))->items[0].preview.state, "checking");
    Attention resume(builds_->attentions(), row.id, "resuming");
    Attention another(builds_->attentions(), row.id, "checking");
    EXPECT_EQ(StateOf(row.id), "resuming");
  }
  EXPECT_EQ(StateOf(row.id), "active");
}

TEST_F(PreviewsTest, OneThatIsNotReadyLoads) {
  workbench_.open_takes = std::chrono::seconds(60);
  auto made = Create({.files = Changes{{.path = "index.html", .new_content = "1"}}});
  EXPECT_EQ(made->preview.state, "loading");
  auto check = Wait(previews_->Check("ann", made->row.id, "http://here"));
  EXPECT_EQ(check->state, "loading");
  EXPECT_EQ(Wait(previews_->Pause("ann", made->row.id)).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Wait(previews_->Resume("ann", made->row.id)).error().code(), Code::kInvalidArgument);
  ASSERT_TRUE(Wait(builds_->Cancel("ann", made->row.id, "")));
  EXPECT_EQ(Await(made->row.id).state, "failed");
  EXPECT_EQ(StateOf(made->row.id), "error");
}

TEST_F(PreviewsTest, AFrameIsForbiddenByHeaders) {
  BuildRow row = Ready();
  auto check = Wait(previews_->Check("ann", row.id, "http://here"));
  EXPECT_EQ(check->state, "active");
  EXPECT_TRUE(check->embedding.embeddable);
  workbench_.headers = {{"X-Frame-Options", "DENY"}};
  check = Wait(previews_->Check("ann", row.id, "http://here"));
  EXPECT_EQ(check->state, "blocked");
  EXPECT_EQ(check->embedding.reason, "x_frame_options");
  EXPECT_EQ(StateOf(row.id), "blocked");
  EXPECT_TRUE(Wait(previews_->Extend("ann", row.id)));
  workbench_.headers = {};
  ASSERT_TRUE(Wait(previews_->Check("ann", row.id, "http://here")));
  EXPECT_EQ(StateOf(row.id), "active");
  workbench_.answers = {502};
  check = Wait(previews_->Check("ann", row.id, "http://here"));
  EXPECT_EQ(check->state, "error");
  EXPECT_EQ(check->embedding.reason, "unreachable");
  EXPECT_EQ(Wait(previews_->Check("bob", row.id, "")).error().code(), Code::kNotFound);
}

TEST_F(PreviewsTest, TheEndOfTheWindowIsToldOnceAndPauses) {
  BuildRow row = Ready();
  ASSERT_TRUE(Wait(previews_->Care()));
  EXPECT_TRUE(DataOf("sandbox_expiring", row.id).empty());
  SetWindow(row.id, std::chrono::seconds(200));
  ASSERT_TRUE(Wait(previews_->Care()));
  ASSERT_TRUE(Wait(previews_->Care()));
  EXPECT_EQ(DataOf("sandbox_expiring", row.id).size(), 1U);
  EXPECT_TRUE(workbench_.paused.empty());
  SetWindow(row.id, std::chrono::seconds(-1));
  ASSERT_TRUE(Wait(previews_->Care()));
  EXPECT_EQ(workbench_.paused.count(row.sandbox_id), 1U);
}

TEST_F(PreviewsTest, AProviderThatCannotPauseOrSaveIsLivedWith) {
  workbench_.snapshot_fails = workbench_.pause_fails =
      Error(Code::kFailedPrecondition, "not in this plan");
  BuildRow row = Ready();
  EXPECT_EQ(row.snapshot_id, "");
  EXPECT_EQ(Wait(previews_->Pause("ann", row.id)).error().message(), "not in this plan");
  SetWindow(row.id, std::chrono::seconds(-1));
  ASSERT_TRUE(Wait(previews_->Care()));
  EXPECT_TRUE(workbench_.paused.empty());
  EXPECT_EQ(workbench_.sandboxes.count(row.sandbox_id), 1U);  // to its own end
  EXPECT_EQ(Build({.goal = "more", .parent_id = row.id}).state, "ready");
}

TEST_F(PreviewsTest, ABuildUnderWayKeepsItsSandboxAwake) {
  BuildRow row = Ready();
  SetWindow(row.id, std::chrono::seconds(-1));
  BuildRow next{.id = "next", .owner_id = "ann", .project = "shop", .state = "code"};
  next.sandbox_id = row.sandbox_id;
  ASSERT_TRUE(Write([next](Tx& tx) { return tx.Insert(next); }));
  ASSERT_TRUE(Wait(previews_->Care()));
  EXPECT_TRUE(workbench_.paused.empty());
}

TEST_F(PreviewsTest, ResumingStartsTheServerAnew) {
  BuildRow row = Ready();
  workbench_.servers.clear();
  auto resumed = Wait(previews_->Resume("ann", row.id));
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_EQ(workbench_.servers.count(row.sandbox_id), 1U);
  EXPECT_GT(*resumed->row.viewing_until, *row.viewing_until);
}

TEST_F(PreviewsTest, TwoReasonsForNotComingBack) {
  BuildRow row = Ready();
  workbench_.answers = {502};
  workbench_.server_runs = false;
  EXPECT_EQ(Wait(previews_->Resume("ann", row.id)).error().code(), Code::kUnavailable);
  EXPECT_EQ(workbench_.wakes, 2);
  EXPECT_EQ(StateOf(row.id), "resume_failed");
  SetStatus(row.sandbox_id, "paused");
  EXPECT_EQ(StateOf(row.id), "resume_failed");
  EXPECT_TRUE(Wait(builds_->Get("ann", row.id))->preview.paused);
  workbench_.answers = {200};
  ASSERT_TRUE(Wait(previews_->Resume("ann", row.id)));
  EXPECT_EQ(StateOf(row.id), "paused");  // the fake leaves the row as it was
  workbench_.sandboxes.clear();
  EXPECT_EQ(Wait(previews_->Resume("ann", row.id)).error().code(), Code::kNotFound);
  EXPECT_EQ(workbench_.wakes, 4);
}

TEST_F(PreviewsTest, SomebodyLooksOnce) {
  BuildRow row = Ready();
  auto first = Wait(builds_->MarkViewed("ann", row.id));
  ASSERT_TRUE(first->row.viewed_at);
  EXPECT_EQ(Wait(builds_->MarkViewed("ann", row.id))->row.viewed_at, first->row.viewed_at);
}

TEST_F(PreviewsTest, OneThatIsShownIsShownLongerWithoutBeingStartedAnew) {
  BuildRow row = Ready();
  SetWindow(row.id, std::chrono::seconds(20));
  workbench_.servers.clear();
  auto extended = Wait(previews_->Extend("ann", row.id));
  ASSERT_TRUE(extended) << extended.error().message();
  EXPECT_GT(*extended->row.viewing_until,
            Now() + std::chrono::seconds(config_.build_viewing_s - 60));
  EXPECT_EQ(extended->row.preview_url, row.preview_url);
  EXPECT_TRUE(workbench_.servers.empty());
  SetStatus(row.sandbox_id, "paused");
  EXPECT_EQ(Wait(previews_->Extend("ann", row.id)).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Wait(previews_->Extend("bob", row.id)).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace caisson::build

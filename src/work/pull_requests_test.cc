#include "work/pull_requests.h"

#include <boost/json.hpp>

#include "work/json_fields.h"
#include "work/platform_fixture.h"
#include "work/pull_request_watch.h"

namespace caisson::work {
namespace {

using store::TaskRow;
using store::Transaction;

class PullRequestsTest : public PlatformTest {
 protected:
  PullRequestsTest() { pulls_ = std::make_unique<PullRequests>(BeginPlatform()); }
  ~PullRequestsTest() override {
    testing::Await(io_, log_->Stop());
    CloseStore();
  }

  void AddTask(const std::string& id, const std::string& repo_url, int64_t number = 7) {
    TaskRow task{.id = id, .number = ++tasks_, .owner_id = "ann", .title = id};
    task.status = "in_review";
    task.repo_url = repo_url;
    task.git_branch = "task-" + id;
    task.pull_request_number = number;
    task.pull_request_state = "open";
    EXPECT_TRUE(Write([task](Transaction& tx) { return tx.Insert(task); }));
  }
  TaskRow TaskOf(const std::string& id) {
    return Write([id](Transaction& tx) { return tx.Need<TaskRow>(id, "task"); }).value();
  }
  void SetStatus(const std::string& id, const std::string& status) {
    TaskRow task = TaskOf(id);
    task.status = status;
    EXPECT_TRUE(Write([task](Transaction& tx) { return tx.Update(task); }));
  }

  forge::WebhookEvent Event(const std::string& action, const std::string& repo = "acme/widget") {
    return {.event = "pull_request",
            .action = action,
            .repo = repo,
            .number = 7,
            .url = "https://github.com/acme/widget/pull/7",
            .head = "task-one",
            .base = "main",
            .actor = "grace"};
  }
  forge::WebhookEvent Review(const std::string& state, const std::string& body = "") {
    forge::WebhookEvent event = Event("submitted");
    event.event = "pull_request_review";
    event.review_state = state;
    event.review_body = body;
    return event;
  }
  Delivery Receive(forge::WebhookEvent event, std::string id = "") {
    if (id.empty()) id = "delivery-" + std::to_string(++deliveries_);
    auto done = Wait(pulls_->Receive(id, std::move(event)));
    EXPECT_TRUE(done) << done.error().message();
    return done.value_or(Delivery());
  }
  std::vector<store::EventRow> Events(const std::string& type) {
    return Write([type](Transaction& tx) {
             return tx.List(store::Select<store::EventRow>()
                                .Eq(&store::EventRow::type, type)
                                .Order(&store::EventRow::id));
           })
        .value();
  }

  std::unique_ptr<PullRequests> pulls_;
  int64_t tasks_ = 0;
  int deliveries_ = 0;
};

TEST_F(PullRequestsTest, ASessionHasTheStateOfItsPullRequest) {
  auto add = [this](const std::string& id, const std::string& repo_url) {
    store::SessionRow session{.id = id, .owner_id = "ann", .repo_url = repo_url};
    session.pull_request_number = 7;
    session.pull_request_state = "draft";
    EXPECT_TRUE(Write([session](Transaction& tx) { return tx.Insert(session); }));
  };
  auto state_of = [this](const std::string& id) {
    return Write([id](Transaction& tx) { return tx.Need<store::SessionRow>(id, "session"); })
        .value()
        .pull_request_state;
  };
  std::vector<std::string> told;
  pulls_ = std::make_unique<PullRequests>(
      platform(), [&told](Transaction&, const store::SessionRow& session) -> Status {
        told.push_back(session.id + " " + session.pull_request_state);
        return {};
      });
  add("here", "acme/widget");
  add("there", "acme/other");
  Delivery ready = Receive(Event("ready_for_review"));
  EXPECT_EQ(ready.outcome, "processed");
  EXPECT_TRUE(ready.task_ids.empty());
  EXPECT_EQ(state_of("here"), "open");
  EXPECT_TRUE(Wait(pulls_->Follow(Event("ready_for_review"))));  // it is known
  Receive(Review("approved"));
  EXPECT_EQ(state_of("here"), "approved");
  forge::WebhookEvent merged = Event("closed");
  merged.merged = true;
  Receive(merged);
  Receive(Event("converted_to_draft"));  // comes late
  EXPECT_EQ(state_of("here"), "merged");
  EXPECT_EQ(state_of("there"), "draft");
  EXPECT_EQ(told, (std::vector<std::string>{"here open", "here approved", "here merged"}));
}

TEST_F(PullRequestsTest, AnApprovedTaskStaysInReview) {
  AddTask("one", "https://github.com/acme/widget.git");
  EXPECT_EQ(Receive(Review("approved")).outcome, "processed");
  EXPECT_EQ(TaskOf("one").status, "in_review");
  EXPECT_EQ(TaskOf("one").pull_request_state, "approved");
  auto events = Events("pr_approved");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].task_id, "one");
  EXPECT_EQ(events[0].owner_id, "ann");
  json::object data = ParseObject(events[0].data);
  EXPECT_EQ(TextOf(data, "reviewer"), "grace");
  EXPECT_EQ(TextOf(data, "review_state"), "approved");
  EXPECT_EQ(IntOf(data, "pr_number"), 7);
  EXPECT_EQ(TextOf(data, "pr_url"), "https://github.com/acme/widget/pull/7");
}

TEST_F(PullRequestsTest, WhatAReviewerAsksForIsKept) {
  AddTask("one", "acme/widget");
  Receive(Review("approved"));
  Receive(Review("changes_requested", "Please test it."));
  EXPECT_EQ(TaskOf("one").feedback, "Please test it.");
  EXPECT_EQ(TaskOf("one").pull_request_state, "open");
  EXPECT_EQ(TaskOf("one").status, "in_review");
  EXPECT_EQ(Events("pr_changes_requested").size(), 1u);
  EXPECT_EQ(Receive(Review("commented", "Hm.")).outcome, "ignored");
  EXPECT_EQ(TaskOf("one").feedback, "Please test it.");
}

TEST_F(PullRequestsTest, RemarksOfTheReviewFollowItsWords) {
  forge::WebhookEvent event = Review("changes_requested", "Nearly.");
  event.review_id = 3;
  AddRemarks(event, {{.body = "Why?", .path = "a.txt", .line = 2, .review_id = 3},
                     {.body = "Another's.", .path = "a.txt", .line = 3, .review_id = 4},
                     {.body = "Rename it.", .path = "b.txt", .review_id = 3}});
  EXPECT_EQ(event.review_body, "Nearly.\n\na.txt:2: Why?\n\nb.txt: Rename it.");
  forge::WebhookEvent silent = Review("changes_requested");
  AddRemarks(silent, {{.body = "Of no review.", .path = "a.txt"}});
  EXPECT_EQ(silent.review_body, "");
}

TEST_F(PullRequestsTest, AMergedTaskIsDone) {
  AddTask("one", "git@github.com:acme/widget.git");
  forge::WebhookEvent event = Event("closed");
  event.merged = true;
  event.merge_sha = "abc";
  Delivery delivery = Receive(event);
  EXPECT_EQ(delivery.merged_branch, "task-one");
  EXPECT_EQ(TaskOf("one").status, "done");
  EXPECT_TRUE(TaskOf("one").completed_at);
  EXPECT_EQ(TaskOf("one").pull_request_state, "merged");
  json::object data = ParseObject(Events("pr_merged").at(0).data);
  EXPECT_EQ(TextOf(data, "merged_by"), "grace");
  EXPECT_EQ(TextOf(data, "merge_commit_sha"), "abc");
}

TEST_F(PullRequestsTest, AClosedTaskHasFailedUntilItIsReopened) {
  AddTask("one", "acme/widget");
  EXPECT_EQ(Receive(Event("closed")).merged_branch, "");
  EXPECT_EQ(TaskOf("one").status, "failed");
  EXPECT_EQ(TaskOf("one").pull_request_state, "closed");
  EXPECT_EQ(TextOf(ParseObject(Events("pr_closed").at(0).data), "closed_by"), "grace");
  Receive(Event("reopened"));
  EXPECT_EQ(TaskOf("one").status, "in_review");
  EXPECT_EQ(TaskOf("one").pull_request_state, "open");
  EXPECT_EQ(TextOf(ParseObject(Events("pr_reopened").at(0).data), "reopened_by"), "grace");
}

TEST_F(PullRequestsTest, WhatAPersonDecidedStays) {
  AddTask("one", "acme/widget");
  SetStatus("one", "canceled");
  Receive(Event("reopened"));
  EXPECT_EQ(TaskOf("one").status, "canceled");
  SetStatus("one", "in_progress");
  Receive(Event("closed"));
  Receive(Event("reopened"));
  EXPECT_EQ(TaskOf("one").status, "in_progress");
  EXPECT_EQ(TaskOf("one").pull_request_state, "open");
}

// B-11: two repositories count their pull requests each from one.
TEST_F(PullRequestsTest, TheNumberAloneIsNotEnough) {
  AddTask("one", "https://github.com/acme/widget");
  AddTask("two", "https://github.com/acme/gadget");
  AddTask("three", "https://github.com/acme/widge");  // "widget.git" without its last characters
  AddTask("four", "https://git.example.com/acme/widget");
  AddTask("five", "https://github.com/ACME/Widget", 8);
  forge::WebhookEvent event = Event("closed", "Acme/Widget");
  event.merged = true;
  EXPECT_EQ(Receive(event).task_ids, std::vector<std::string>{"one"});
  for (const char* other : {"two", "three", "four", "five"})
    EXPECT_EQ(TaskOf(other).status, "in_review") << other;
  EXPECT_EQ(Events("pr_merged").size(), 1u);
}

TEST_F(PullRequestsTest, ADeliveryCountsOnce) {
  AddTask("one", "acme/widget");
  EXPECT_EQ(Receive(Event("closed"), "same").outcome, "processed");
  SetStatus("one", "in_review");
  Delivery again = Receive(Event("closed"), "same");
  EXPECT_EQ(again.outcome, "ignored");
  EXPECT_EQ(TaskOf("one").status, "in_review");
  EXPECT_EQ(Events("pr_closed").size(), 1u);
}

TEST_F(PullRequestsTest, DraftsAndOthersAreFollowed) {
  AddTask("one", "acme/widget");
  forge::WebhookEvent draft = Event("converted_to_draft");
  draft.draft = true;
  Receive(draft);
  EXPECT_EQ(TaskOf("one").pull_request_state, "draft");
  Receive(Event("ready_for_review"));
  EXPECT_EQ(TaskOf("one").pull_request_state, "open");
  EXPECT_EQ(Receive(Event("labeled")).outcome, "ignored");
  EXPECT_EQ(Receive(Event("closed", "acme/unknown")).outcome, "ignored");
  EXPECT_EQ(Receive({.event = "ping"}).outcome, "ignored");
}

// OA-60: a sandbox of a user, without a task.
TEST_F(PullRequestsTest, ASandboxWithoutATaskIsTold) {
  EXPECT_TRUE(Write([](Transaction& tx) {
    store::WorkSandboxRow row{
        .id = "ibox", .provider = "local", .owner_id = "ann", .holder_kind = "user"};
    row.repo_url = "https://github.com/acme/widget";
    row.pr_number = 7;
    return tx.Insert(row);
  }));
  EXPECT_EQ(Receive(Event("closed")).outcome, "processed");
  auto events = Events("pr_closed");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].sandbox_id, "ibox");
}

TEST_F(PullRequestsTest, WhatWeDidIsToldOnceWhateverComesFirst) {
  AddTask("one", "https://github.com/acme/widget.git");
  forge::WebhookEvent closed = Event("closed"), reopened = Event("reopened");
  EXPECT_TRUE(Wait(pulls_->Follow(closed)));
  EXPECT_EQ(TaskOf("one").status, "failed");
  SetStatus("one", "backlog");  // somebody's wish
  Receive(closed);
  EXPECT_EQ(TaskOf("one").status, "backlog");
  Receive(reopened);
  EXPECT_TRUE(Wait(pulls_->Follow(reopened)));
  EXPECT_EQ(TaskOf("one").status, "in_review");
  forge::WebhookEvent merged = closed;
  merged.merged = true;
  EXPECT_TRUE(Wait(pulls_->Follow(merged)));
  // GitHub's words of before come late.
  Receive(closed);
  Receive(reopened);
  EXPECT_EQ(Receive(merged).merged_branch, "task-one");
  EXPECT_EQ(TaskOf("one").status, "done");
  EXPECT_EQ(TaskOf("one").pull_request_state, "merged");
  for (const char* type : {"pr_closed", "pr_reopened", "pr_merged"})
    EXPECT_EQ(Events(type).size(), 1U) << type;
}

TEST_F(PullRequestsTest, WhatWasFoundOutTooLateChangesNothing) {
  AddTask("one", "acme/widget");
  Receive(Event("closed"));
  EXPECT_TRUE(Wait(pulls_->Follow(Event("ready_for_review"), "draft")));
  EXPECT_EQ(TaskOf("one").pull_request_state, "closed");
  EXPECT_TRUE(Wait(pulls_->Follow(Event("reopened"), "closed")));
  EXPECT_EQ(TaskOf("one").pull_request_state, "open");
}

TEST(PullRequestWatchTest, TheStepFromWhatIsKnown) {
  const forge::PullRequest open{.state = "open"}, draft{.state = "open", .draft = true},
      closed{.state = "closed"}, merged{.state = "closed", .merged = true};
  struct Case {
    const forge::PullRequest& now;
    const char* known;
    const char* step;
  };
  for (const Case& one : std::vector<Case>{{open, "open", ""},
                                           {open, "approved", ""},
                                           {open, "draft", "ready_for_review"},
                                           {open, "closed", "reopened"},
                                           {draft, "draft", ""},
                                           {draft, "open", "converted_to_draft"},
                                           {draft, "approved", "converted_to_draft"},
                                           {draft, "closed", "reopened"},
                                           {closed, "open", "closed"},
                                           {closed, "approved", "closed"},
                                           {closed, "closed", ""},
                                           {merged, "open", "closed"},
                                           {merged, "closed", "closed"},
                                           {merged, "merged", ""}})
    EXPECT_EQ(StepTo(one.now, one.known), one.step) << one.known;
}

TEST(PullRequestWatchTest, TheLastTenthOfTheBudgetIsLeftAlone) {
  Time now = Now();
  EXPECT_FALSE(IsScarce({}, now));  // nobody has told yet
  EXPECT_FALSE(IsScarce({.limit = 5000, .remaining = 500}, now));
  EXPECT_TRUE(IsScarce({.limit = 5000, .remaining = 499}, now));
  forge::Budget low{.limit = 5000, .remaining = 0, .resets_at = now + std::chrono::seconds(1)};
  EXPECT_TRUE(IsScarce(low, now));
  EXPECT_FALSE(IsScarce(low, now + std::chrono::seconds(1)));
}

}  // namespace
}  // namespace caisson::work

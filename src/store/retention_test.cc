#include "store/retention.h"

#include <gtest/gtest.h>

#include "store/flow_rows.h"
#include "store/migrations.h"
#include "store/old_runs.h"
#include "store/testing.h"

namespace caisson::store {
namespace {

class RetentionTest : public testing::DatabaseTest {
 protected:
  RetentionTest() {
    EXPECT_TRUE(Migrate(*db_));
    EXPECT_TRUE(db_->Script("INSERT INTO users VALUES ('ann', 'ann', 'member', '', 0, NULL, '')"));
  }
  int64_t Count(const std::string& table) {
    auto rows = db_->Query("SELECT count(*) FROM " + table).value();
    EXPECT_TRUE(rows.Step().value());
    return rows.Int(0);
  }
  void AddEvents(int count, Time at) {
    ASSERT_TRUE(db_->Begin(Database::Access::kWrite));
    for (int i = 0; i < count; ++i)
      ASSERT_TRUE(
          db_->Run("INSERT INTO events (at, type, owner_id, agent_id, squad_id, task_id, "
                   "execution_id, run_id, sandbox_id, session_id, build_id, data) "
                   "VALUES (?, 'log', '', '', '', '', '', '', '', '', '', '{}')",
                   at));
    ASSERT_TRUE(db_->Commit());
  }
  void AddTask(const std::string& id, const std::string& status) {
    ASSERT_TRUE(db_->Run(
        "INSERT INTO tasks VALUES (?, (SELECT count(*) FROM tasks), 'ann', NULL, NULL, 't', '', ?, "
        "'low', 1, '', '', '', '', 0, '', '', '{}', 0, 0, NULL, NULL, '', NULL)",
        id, status));
  }
  void AddRun(const std::string& id, std::optional<std::string> task, const std::string& state,
              Time created, std::optional<Time> finished) {
    Transaction tx(*db_);
    RunRow run{.id = id,
               .definition = "task",
               .owner_id = "ann",
               .task_id = std::move(task),
               .state = state,
               .created_at = created,
               .finished_at = finished};
    ASSERT_TRUE(tx.Insert(run));
    ASSERT_TRUE(tx.Insert(StepRow{.id = id + "/1", .run_id = id, .name = "one", .state = "done"}));
  }
  static Time DaysAgo(int days) { return Now() - std::chrono::hours(24 * days); }

  std::unique_ptr<Database> db_ = database_.Open();
};
CAISSON_ON_BOTH_DATABASES(RetentionTest);

TEST_P(RetentionTest, ABoundedNumberAtATime) {
  AddEvents(1'500, DaysAgo(31));
  AddEvents(10, DaysAgo(29));
  EXPECT_TRUE(DeleteOld(*db_, {.events_days = 30}));
  EXPECT_EQ(Count("events"), 510);
  EXPECT_FALSE(DeleteOld(*db_, {.events_days = 30}));
  EXPECT_EQ(Count("events"), 10);
}

TEST_P(RetentionTest, EachTableHasItsOwnTime) {
  for (int days : {2, 40}) {
    std::string id = std::to_string(days);
    Time at = DaysAgo(days);
    AddEvents(1, at);
    ASSERT_TRUE(
        db_->Run("INSERT INTO audit_log (at, actor_id, key_id, action, target, status, "
                 "request_id, address) VALUES (?, '', '', '', '', 200, '', '')",
                 at));
    ASSERT_TRUE(db_->Run("INSERT INTO idempotency VALUES (?, '', 200, '', ?)", id, at));
    ASSERT_TRUE(
        db_->Run("INSERT INTO webhook_deliveries VALUES (?, '', '', '', '', '', '', ?)", id, at));
    ASSERT_TRUE(db_->Run("INSERT INTO logins VALUES (?, 'ann', ?, 0, ?, NULL, '')", id, id, at));
    ASSERT_TRUE(
        db_->Run("INSERT INTO git_operations VALUES (?, 'ann', '', NULL, '', 'clone', "
                 "'completed', '', 0, 1, '', '', '', '', '', 0, ?)",
                 id, at));
  }
  EXPECT_FALSE(DeleteOld(*db_, {}));  // for ever
  EXPECT_EQ(Count("audit_log"), 2);
  EXPECT_FALSE(
      DeleteOld(*db_, {.days = 30, .events_days = 50, .audit_days = 1, .idempotency_hours = 72}));
  EXPECT_EQ(Count("events"), 2);
  EXPECT_EQ(Count("audit_log"), 0);
  EXPECT_EQ(Count("idempotency"), 1);
  EXPECT_EQ(Count("webhook_deliveries"), 1);
  EXPECT_EQ(Count("git_operations"), 1);
  EXPECT_EQ(Count("logins"), 1);
}

TEST_P(RetentionTest, RunsThatEndedLongAgo) {
  for (const char* status : {"in_review", "done", "failed"}) AddTask(status, status);
  AddRun("old", std::nullopt, "succeeded", DaysAgo(100), DaysAgo(95));
  AddRun("old of a done task", "done", "dead", DaysAgo(100), DaysAgo(95));
  AddRun("old of a failed task", "failed", "canceled", DaysAgo(100), DaysAgo(95));
  AddRun("of an open task", "in_review", "succeeded", DaysAgo(100), DaysAgo(95));
  AddRun("ended lately", "done", "succeeded", DaysAgo(100), DaysAgo(80));
  AddRun("waits", "done", "waiting", DaysAgo(100), std::nullopt);
  auto forget = [&](int64_t most) {
    Transaction tx(*db_);
    auto deleted = DeleteOldRuns(tx, DaysAgo(90), most);
    EXPECT_TRUE(deleted) << deleted.error().message();
    return deleted.value_or(-1);
  };
  EXPECT_EQ(forget(2), 2);
  EXPECT_EQ(forget(2), 1);
  EXPECT_EQ(forget(2), 0);
  EXPECT_EQ(Count("runs"), 3);
  EXPECT_EQ(Count("steps"), 3);
  ASSERT_TRUE(db_->Script("UPDATE tasks SET status = 'done'"));
  EXPECT_EQ(forget(2), 1);
}

}  // namespace
}  // namespace caisson::store

// Lookups that happen often must not read whole tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/event_row.h"
#include "store/flow_rows.h"
#include "store/migrations.h"
#include "store/review_rows.h"
#include "store/sandbox_rows.h"
#include "store/testing.h"
#include "store/work_rows.h"

namespace caisson::store {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// By an index of that name, or whose name begins so; as SQLite and as PostgreSQL say it.
auto UsesIndex(const std::string& name) {
  return AnyOf(HasSubstr("USING INDEX " + name), HasSubstr("Scan using " + name),
               HasSubstr("Index Scan on " + name));
}

class IndexTest : public testing::DatabaseTest {
 protected:
  IndexTest() {
    EXPECT_TRUE(Migrate(*db_));
    // Small tables are read whole, and a plan for known values may use what one for any value
    // cannot: neither is what happens in a server.
    if (database_.postgres())
      EXPECT_TRUE(
          db_->Script("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan"));
  }
  // How the database would find the rows.
  template <class Row>
  std::string Plan(const Select<Row>& select) {
    std::string explain = database_.postgres() ? "EXPLAIN " : "EXPLAIN QUERY PLAN ";
    auto rows = db_->Query(explain + internal::SelectText<Row>() + select.where() + select.tail(),
                           select.values());
    EXPECT_TRUE(rows) << rows.error().message();
    std::string plan;
    while (rows->Step().value()) plan += rows->Text(database_.postgres() ? 0 : 3) + "\n";
    return plan;
  }

  std::unique_ptr<Database> db_ = database_.Open();
};
CAISSON_ON_BOTH_DATABASES(IndexTest);

TEST_P(IndexTest, LinksToTasks) {
  using Row = TaskShareRow;
  EXPECT_THAT(Plan(Select<Row>().Eq(&Row::token_hash, "h")), UsesIndex("task_shares_token"));
  EXPECT_THAT(Plan(Select<Row>().Eq(&Row::task_id, "t").Order(&Row::created_at)),
              UsesIndex("task_shares_task"));
}

TEST_P(IndexTest, SandboxesOfTheWorkPlatform) {
  using Row = WorkSandboxRow;
  EXPECT_THAT(Plan(Select<Row>().Eq(&Row::task_id, "t").Eq(&Row::status, "running")),
              UsesIndex("work_sandboxes_"));
  EXPECT_THAT(Plan(Select<Row>().Eq(&Row::task_id, "t")), UsesIndex("work_sandboxes_task"));
  EXPECT_THAT(Plan(Select<Row>().Eq(&Row::status, "running")), UsesIndex("work_sandboxes_status"));
  EXPECT_THAT(Plan(Select<Row>().Eq(&Row::backend_id, "b")),
              UsesIndex("work_sandboxes_by_backend"));
  EXPECT_THAT(Plan(Select<Row>()
                       .Eq(&Row::holder_kind, "task")
                       .Eq(&Row::holder_id, "t")
                       .IsNull(&Row::destroyed_at)),
              UsesIndex("work_sandboxes_"));
  EXPECT_THAT(Plan(Select<Row>().Eq(&Row::pr_number, 7)), UsesIndex("work_sandboxes_pr"));
}

TEST_P(IndexTest, Tasks) {
  EXPECT_THAT(Plan(Select<TaskRow>().Eq(&TaskRow::pull_request_number, 7)),
              UsesIndex("tasks_pull_request"));
  EXPECT_THAT(Plan(Select<TaskRow>().Eq(&TaskRow::owner_id, "a").Eq(&TaskRow::status, "done")),
              UsesIndex("tasks_"));
  EXPECT_THAT(Plan(Select<GitOperationRow>().Eq(&GitOperationRow::task_id, "t")),
              UsesIndex("git_operations_task"));
}

TEST_P(IndexTest, StepsAndEvents) {
  EXPECT_THAT(Plan(Select<StepRow>().Eq(&StepRow::wait_key, "k")), UsesIndex("steps_wait"));
  EXPECT_THAT(Plan(Select<StepRow>().Eq(&StepRow::run_id, "r")), UsesIndex("steps_name"));
  EXPECT_THAT(Plan(Select<EventRow>().Eq(&EventRow::task_id, "t").Greater(&EventRow::id, 5)),
              UsesIndex("events_task"));
  EXPECT_THAT(Plan(Select<EventRow>().Eq(&EventRow::agent_id, "t").Greater(&EventRow::id, 5)),
              UsesIndex("events_agent"));
  EXPECT_THAT(Plan(Select<EventRow>().Eq(&EventRow::sandbox_id, "s").Less(&EventRow::id, 5)),
              UsesIndex("events_sandbox"));
  EXPECT_THAT(Plan(Select<EventRow>().Eq(&EventRow::squad_id, "s").Greater(&EventRow::id, 5)),
              UsesIndex("events_squad"));
  EXPECT_THAT(Plan(Select<EventRow>().Eq(&EventRow::run_id, "r").Greater(&EventRow::id, 5)),
              UsesIndex("events_run"));
}

TEST_P(IndexTest, RunsThatWaitAndThatBegan) {
  using Row = RunRow;
  EXPECT_THAT(Plan(Select<Row>().Less(&Row::queue_expires_at, Now()).Order(&Row::queue_expires_at)),
              UsesIndex("runs_queue"));
  EXPECT_THAT(Plan(Select<Row>().Greater(&Row::started_at, Now())), UsesIndex("runs_started"));
}

TEST_P(IndexTest, TasksThatWaitForAnAgent) {
  using Row = TaskRow;
  EXPECT_THAT(Plan(Select<Row>().NotNull(&Row::queued_at).Order(&Row::owner_id)),
              UsesIndex("tasks_queued"));
  EXPECT_THAT(
      Plan(Select<Row>().Eq(&Row::owner_id, "o").NotNull(&Row::queued_at).Order(&Row::queued_at)),
      UsesIndex("tasks_queued"));
}

}  // namespace
}  // namespace caisson::store

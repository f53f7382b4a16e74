#include "store/migrations.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/testing.h"
#include "store/account_rows.h"
#include "store/person_rows.h"
#include "store/rows.h"
#include "store/sandbox_rows.h"
#include "store/store.h"
#include "store/testing.h"
#include "store/transaction.h"
#include "store/work_rows.h"
#include "store/work_schema.h"

namespace caisson::store {
namespace {

using Names = std::vector<std::string>;

class MigrationsTest : public testing::DatabaseTest {
 protected:
  Names Tables() {
    auto rows = db_->Query(
        database_.postgres()
            ? "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
            : "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
              "ORDER BY 1");
    Names names;
    while (rows->Step().value())
      if (rows->Text(0) != "schema_version") names.push_back(rows->Text(0));
    return names;
  }
  void UpDownUp() {
    auto up = Migrate(*db_);
    ASSERT_TRUE(up) << up.error().message();
    EXPECT_EQ(SchemaVersion(*db_).value(), newest_);
    Names tables = Tables();
    // One by one, so that each step is undone from the schema it made.
    for (int64_t version = newest_ - 1; version >= 0; --version) {
      auto down = Migrate(*db_, version);
      ASSERT_TRUE(down) << down.error().message();
      EXPECT_EQ(SchemaVersion(*db_).value(), version);
    }
    EXPECT_EQ(Tables(), Names{});
    ASSERT_TRUE(Migrate(*db_));
    ASSERT_TRUE(Migrate(*db_));  // nothing to do the second time
    EXPECT_EQ(Tables(), tables);
  }

  std::unique_ptr<Database> db_ = database_.Open();
  int64_t newest_ = Migrations().back().version;
};
CAISSON_ON_BOTH_DATABASES(MigrationsTest);

TEST(Migrations, AreNumberedWithoutGaps) {
  int64_t expected = 1;
  for (const Migration& step : Migrations()) EXPECT_EQ(step.version, expected++);
}

TEST_P(MigrationsTest, GoUpDownAndUpAgain) { UpDownUp(); }

TEST_P(MigrationsTest, MakeEveryTable) {
  ASSERT_TRUE(Migrate(*db_));
  EXPECT_EQ(Tables(), (Names{"agent_loops",
                             "agent_turns",
                             "agents",
                             "api_keys",
                             "approval_requests",
                             "audit_log",
                             "build_files",
                             "build_logs",
                             "builds",
                             "cost_entries",
                             "events",
                             "git_operations",
                             "github_tokens",
                             "idempotency",
                             "kept_checkouts",
                             "logins",
                             "messages",
                             "nodes",
                             "runs",
                             "sandbox_events",
                             "sandboxes",
                             "sessions",
                             "signals",
                             "snapshots",
                             "squad_members",
                             "squads",
                             "steps",
                             "task_changes",
                             "task_dependencies",
                             "task_executions",
                             "task_shares",
                             "tasks",
                             "terminals",
                             "user_identities",
                             "user_preferences",
                             "users",
                             "webhook_deliveries",
                             "work_sandboxes"}));
}

// Rows that refer to each other, in tables of all steps.
Status Fill(Database& database) {
  Transaction tx(database);
  TRY(database.Run(
      "INSERT INTO api_keys (id, name, hash, hint, created_at) VALUES ('k','','','',1)"));
  TRY(tx.Insert(UserRow{.id = "ann", .name = "ann", .role = "member", .created_at = Now()}));
  TRY(tx.Insert(GithubTokenRow{
      .id = "ann:", .user_id = "ann", .login = "ann", .sealed = "1:", .created_at = Now()}));
  TRY(tx.Insert(AgentRow{
      .id = "a", .owner_id = "ann", .name = "a", .created_at = Now(), .updated_at = Now()}));
  TRY(tx.Insert(TaskRow{.id = "t",
                        .number = 1,
                        .owner_id = "ann",
                        .agent_id = "a",
                        .title = "t",
                        .created_at = Now(),
                        .updated_at = Now()}));
  return tx.Insert(WorkSandboxRow{.id = "w",
                                  .owner_id = "ann",
                                  .holder_kind = "user",
                                  .agent_id = "a",
                                  .task_id = "t",
                                  .created_at = Now(),
                                  .last_used_at = Now()});
}

TEST_P(MigrationsTest, GoUpDownAndUpAgainWithRows) {
  ASSERT_TRUE(Migrate(*db_));
  Status filled = Fill(*db_);
  ASSERT_TRUE(filled) << filled.error().message();
  UpDownUp();
}

// What an older program wrote is there after the step, with the new columns' defaults.
TEST_P(MigrationsTest, KeepTheRowsOfOlderPrograms) {
  ASSERT_TRUE(Migrate(*db_, 1));
  ASSERT_TRUE(db_->Run(
      "INSERT INTO api_keys (id, name, hash, hint, created_at) VALUES ('k','n','h','',1)"));
  ASSERT_TRUE(Migrate(*db_));
  auto rows = db_->Query("SELECT name, limits, user_id FROM api_keys").value();
  ASSERT_TRUE(rows.Step().value());
  EXPECT_EQ(rows.Text(0) + rows.Text(1) + rows.Text(2), "n{}");
}

TEST_P(MigrationsTest, SandboxesOfOlderProgramsBelongToTheServerThatMadeThem) {
  ASSERT_TRUE(Migrate(*db_));
  ASSERT_TRUE(Fill(*db_));
  Transaction tx(*db_);
  ASSERT_TRUE(InsertSandboxRow(*db_, SandboxRow{.id = "i1", .state = "running"}, "a"));
  WorkSandboxRow row = tx.Need<WorkSandboxRow>("w", "sandbox").value();
  row.provider = "local";
  row.backend_id = "i1";
  ASSERT_TRUE(tx.Update(row));
  row.id = "elsewhere";
  row.provider = "e2b";
  ASSERT_TRUE(tx.Insert(row));
  ASSERT_TRUE(Migrate(*db_, 14));
  ASSERT_TRUE(Migrate(*db_));
  EXPECT_EQ(tx.Need<WorkSandboxRow>("w", "sandbox")->node, "a");
  EXPECT_EQ(tx.Need<WorkSandboxRow>("elsewhere", "sandbox")->node, "");
}

TEST_P(MigrationsTest, ATaskThatIsDeletedLeavesItsSandboxBehind) {
  ASSERT_TRUE(Migrate(*db_));
  ASSERT_TRUE(Fill(*db_));
  Transaction tx(*db_);
  EXPECT_EQ(tx.Delete(Select<TaskRow>()).value(), 1);
  EXPECT_EQ(tx.Need<WorkSandboxRow>("w", "sandbox")->task_id, std::nullopt);
  WorkSandboxRow orphan = tx.Need<WorkSandboxRow>("w", "sandbox").value();
  orphan.id = "w2";
  orphan.task_id = "t";
  EXPECT_EQ(tx.Insert(orphan).error().code(), Code::kNotFound);
}

TEST_P(MigrationsTest, RefuseASchemaFromTheFuture) {
  ASSERT_TRUE(Migrate(*db_));
  ASSERT_TRUE(db_->Script("INSERT INTO schema_version VALUES (99, 'from the future', 0)"));
  auto refused = Migrate(*db_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(refused.error().message().find("schema version 99"), std::string::npos);
  EXPECT_EQ(Migrate(*db_, 98).error().code(), Code::kInvalidArgument);
}

TEST_P(MigrationsTest, AreMadeOnceWhenServersStartTogether) {
  std::vector<std::thread> servers;
  std::vector<Status> results(4);
  for (Status& result : results)
    servers.emplace_back([this, &result] {
      auto own = OpenDatabase(database_.url());
      result = own ? Migrate(**own) : Status(tl::unexpect, own.error());
    });
  for (std::thread& server : servers) server.join();
  for (const Status& result : results) EXPECT_TRUE(result) << result.error().message();
  auto rows = db_->Query("SELECT count(*) FROM schema_version").value();
  ASSERT_TRUE(rows.Step().value());
  EXPECT_EQ(rows.Int(0), newest_);
}

TEST_P(MigrationsTest, LinksAreMadeOfWhatIsThere) {
  auto step = std::ranges::find_if(Migrations(),
                                   [](const Migration& one) { return one.up == kLinkSchemaUp; });
  ASSERT_TRUE(Migrate(*db_, step->version - 1));
  ASSERT_TRUE(db_->Script(R"sql(
INSERT INTO users (id, name, role, password_hash, created_at) VALUES ('ann', 'ann', 'member', '', 0);
INSERT INTO tasks (id, number, owner_id, title, description, status, priority, position, repo_url,
    base_branch, git_branch, pull_request_url, pull_request_number, pull_request_state, feedback,
    options, created_at, updated_at)
  VALUES ('t', 1, 'ann', '', '', 'done', 'low', 0, '', '', '', '', 0, '', '', '', 0, 0);
INSERT INTO agents VALUES ('busy', 'ann', '', '', 'idle', '', '', 't', '', '', 0, 0, NULL);
INSERT INTO agents VALUES ('lost', 'ann', '', '', 'idle', '', '', 'gone', '', '', 0, 0, NULL);
)sql"));
  ASSERT_TRUE(Migrate(*db_));
  auto task_of = [&](const std::string& agent) {
    auto rows = db_->Query("SELECT coalesce(current_task_id, '-') FROM agents WHERE id = ?",
                           std::vector<Value>{agent});
    EXPECT_TRUE(rows->Step().value());
    return rows->Text(0);
  };
  EXPECT_EQ(task_of("busy"), "t");
  EXPECT_EQ(task_of("lost"), "-");
  EXPECT_FALSE(db_->Run("UPDATE agents SET current_task_id = 'gone' WHERE id = 'lost'"));
  ASSERT_TRUE(db_->Run("DELETE FROM tasks WHERE id = 't'"));
  EXPECT_EQ(task_of("busy"), "-");
}

}  // namespace
}  // namespace caisson::store

#include "store/store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/testing.h"

namespace caisson::store {
namespace {

using namespace std::chrono_literals;
using caisson::testing::Await;

SandboxRow Row(const std::string& id) {
  SandboxRow row;
  row.id = id;
  row.key_id = "admin";
  row.template_id = "base";
  row.alias = "base";
  row.state = "running";
  row.metadata = {{"a", "1"}, {"quote\"", "ü\n"}};
  row.env = {{"PATH", "/bin"}};
  row.allow_internet = false;
  row.network_json = R"({"denyOut":["0.0.0.0/0"]})";
  row.mask_request_host = "localhost:${PORT}";
  row.cpus = 2;
  row.memory_mb = 1024;
  row.disk_mb = 10'240;
  row.timeout_s = 300;
  row.idempotency_key = "k";
  row.request_hash = "h";
  row.started_at = Now();
  row.end_at = row.started_at + 300s;
  row.auto_pause = true;
  row.auto_pause_memory = false;
  row.auto_resume = true;
  return row;
}

SandboxEvent Event(const std::string& id, std::string message, std::string level = "info") {
  return {.sandbox_id = id,
          .at = Now(),
          .type = "test",
          .level = std::move(level),
          .message = std::move(message),
          .fields = {{"k", "v"}}};
}

class StoreTest : public testing::DatabaseTest {
 protected:
  std::unique_ptr<Store> Open(StoreOptions options = {}) {
    auto store = OpenStore(database_.url(), io_.get_executor(), options);
    EXPECT_TRUE(store) << store.error().message();
    return std::move(store.value());
  }
  std::vector<std::string> Messages(Store& store, const std::string& id, EventQuery query) {
    auto events = Await(io_, store.ListEvents(id, std::move(query)));
    EXPECT_TRUE(events);
    std::vector<std::string> messages;
    for (const auto& event : events.value()) messages.push_back(event.message);
    return messages;
  }
};
CAISSON_ON_BOTH_DATABASES(StoreTest);

TEST_P(StoreTest, ARowComesBackAsItWas) {
  auto store = Open();
  SandboxRow row = Row("i1");
  ASSERT_TRUE(Await(io_, store->InsertSandbox(row, Event("i1", "created"))));
  auto live = Await(io_, store->ListLiveSandboxes()).value();
  ASSERT_EQ(live.size(), 1u);
  const SandboxRow& read = live[0];
  EXPECT_EQ(read.id, row.id);
  EXPECT_EQ(read.key_id, row.key_id);
  EXPECT_EQ(read.template_id, row.template_id);
  EXPECT_EQ(read.alias, row.alias);
  EXPECT_EQ(read.state, row.state);
  EXPECT_EQ(read.metadata, row.metadata);
  EXPECT_EQ(read.env, row.env);
  EXPECT_TRUE(read.secure);
  EXPECT_FALSE(read.allow_internet);
  EXPECT_TRUE(read.allow_public_traffic);
  EXPECT_EQ(read.network_json, row.network_json);
  EXPECT_EQ(read.mask_request_host, row.mask_request_host);
  EXPECT_EQ(read.cpus, row.cpus);
  EXPECT_EQ(read.memory_mb, row.memory_mb);
  EXPECT_EQ(read.disk_mb, row.disk_mb);
  EXPECT_EQ(read.timeout_s, row.timeout_s);
  EXPECT_EQ(read.idempotency_key, row.idempotency_key);
  EXPECT_EQ(read.request_hash, row.request_hash);
  EXPECT_EQ(read.started_at, row.started_at);
  EXPECT_EQ(read.end_at, row.end_at);
  EXPECT_EQ(read.ended_at, std::nullopt);
  EXPECT_TRUE(read.auto_pause);
  EXPECT_FALSE(read.auto_pause_memory);
  EXPECT_TRUE(read.auto_resume);

  row.state = "paused";
  row.saved_tier = "frozen";
  row.saved_why = "it is traced";
  row.saved_memory_bytes = 5;
  row.saved_disk_bytes = 6;
  ASSERT_TRUE(Await(io_, store->UpdateSandbox(row, Event("i1", "paused"))));
  live = Await(io_, store->ListLiveSandboxes()).value();
  ASSERT_EQ(live.size(), 1u);
  EXPECT_EQ(live[0].state, "paused");
  EXPECT_EQ(live[0].saved_tier, "frozen");
  EXPECT_EQ(live[0].saved_why, "it is traced");
  EXPECT_EQ(live[0].saved_memory_bytes, 5);
  EXPECT_EQ(live[0].saved_disk_bytes, 6);
}

TEST_P(StoreTest, SnapshotsComeBackAsTheyWere) {
  auto store = Open();
  ASSERT_TRUE(Await(io_, store->InsertSandbox(Row("i1"), Event("i1", "created"))));
  SnapshotRow row{.id = "s1",
                  .key_id = "admin",
                  .sandbox_id = "i1",
                  .name = "mine",
                  .tag = "v1",
                  .template_id = "base",
                  .alias = "b",
                  .env = {{"A", "1"}},
                  .secure = false,
                  .cpus = 1,
                  .memory_mb = 2,
                  .disk_mb = 3,
                  .tier = "memory",
                  .memory_bytes = 4,
                  .disk_bytes = 5,
                  .created_at = Now()};
  ASSERT_TRUE(Await(io_, store->InsertSnapshot(row, Event("i1", "snapshot"))));
  auto read = Await(io_, store->ListSnapshots()).value();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].id, row.id);
  EXPECT_EQ(read[0].key_id, row.key_id);
  EXPECT_EQ(read[0].sandbox_id, row.sandbox_id);
  EXPECT_EQ(read[0].name, row.name);
  EXPECT_EQ(read[0].tag, row.tag);
  EXPECT_EQ(read[0].template_id, row.template_id);
  EXPECT_EQ(read[0].alias, row.alias);
  EXPECT_EQ(read[0].env, row.env);
  EXPECT_FALSE(read[0].secure);
  EXPECT_EQ(read[0].cpus, 1);
  EXPECT_EQ(read[0].memory_mb, 2);
  EXPECT_EQ(read[0].disk_mb, 3);
  EXPECT_EQ(read[0].tier, row.tier);
  EXPECT_EQ(read[0].memory_bytes, 4);
  EXPECT_EQ(read[0].disk_bytes, 5);
  EXPECT_EQ(read[0].created_at, row.created_at);

  // The name goes over to the newest; another key's is its own.
  row.id = "s2";
  ASSERT_TRUE(Await(io_, store->InsertSnapshot(row, Event("i1", "snapshot"))));
  row.id = "s3";
  row.key_id = "other";
  ASSERT_TRUE(Await(io_, store->InsertSnapshot(row, Event("i1", "snapshot"))));
  read = Await(io_, store->ListSnapshots()).value();
  ASSERT_EQ(read.size(), 3u);
  for (const SnapshotRow& one : read) EXPECT_EQ(one.name, one.id == "s1" ? "" : "mine");
  EXPECT_TRUE(Await(io_, store->DeleteSnapshot("s1")));
  EXPECT_EQ(Await(io_, store->DeleteSnapshot("s1")).error().code(), Code::kNotFound);
  EXPECT_EQ(Await(io_, store->ListSnapshots())->size(), 2u);
}

TEST_P(StoreTest, AKilledSandboxIsHistoryAndSurvivesReopening) {
  {
    auto store = Open();
    SandboxRow row = Row("i1");
    ASSERT_TRUE(Await(io_, store->InsertSandbox(row, Event("i1", "created"))));
    row.state = "killed";
    row.reason = "timeout";
    row.ended_at = Now();
    ASSERT_TRUE(Await(io_, store->UpdateSandbox(row, Event("i1", "killed"))));
    // A late change does not bring it back.
    EXPECT_EQ(Await(io_, store->UpdateSandbox(Row("i1"), Event("i1", "late"))).error().code(),
              Code::kNotFound);
    ASSERT_TRUE(Await(io_, store->Close()));
    EXPECT_EQ(Await(io_, store->ListLiveSandboxes()).error().code(), Code::kUnavailable);
  }
  auto store = Open();
  EXPECT_TRUE(Await(io_, store->ListLiveSandboxes()).value().empty());
  auto row = Await(io_, store->GetSandbox("i1")).value();
  ASSERT_TRUE(row);
  EXPECT_EQ(row->reason, "timeout");
  EXPECT_TRUE(row->ended_at);
  EXPECT_FALSE(Await(io_, store->GetSandbox("i2")).value());
  EXPECT_EQ(Messages(*store, "i1", {}), (std::vector<std::string>{"created", "killed"}));
}

TEST_P(StoreTest, RowAndEventAreOneTransaction) {
  auto store = Open();
  ASSERT_TRUE(Await(io_, store->InsertSandbox(Row("i1"), Event("i1", "created"))));
  // The event is refused by the schema (unknown level), so the row must not be there either.
  auto refused = Await(io_, store->InsertSandbox(Row("i2"), Event("i2", "created", "loud")));
  EXPECT_FALSE(refused);
  EXPECT_FALSE(Await(io_, store->GetSandbox("i2")).value());
  EXPECT_EQ(Await(io_, store->InsertSandbox(Row("i1"), Event("i1", "again"))).error().code(),
            Code::kAlreadyExists);
  EXPECT_EQ(Await(io_, store->UpdateSandbox(Row("i3"), Event("i3", "x"))).error().code(),
            Code::kNotFound);
  EXPECT_EQ(Await(io_, store->AppendEvent(Event("i3", "x"))).error().code(), Code::kNotFound);
  EXPECT_EQ(Messages(*store, "i1", {}), std::vector<std::string>{"created"});
}

TEST_P(StoreTest, EventsAreFilteredOrderedAndLimited) {
  auto store = Open();
  ASSERT_TRUE(Await(io_, store->InsertSandbox(Row("i1"), Event("i1", "created"))));
  ASSERT_TRUE(Await(io_, store->InsertSandbox(Row("i2"), Event("i2", "of another"))));
  Time start = Now();
  std::vector<SandboxEvent> events;
  for (int i = 0; i < 5; ++i) {
    SandboxEvent event = Event("i1", "e" + std::to_string(i), i % 2 ? "warn" : "debug");
    event.at = start + std::chrono::seconds(i);
    ASSERT_TRUE(Await(io_, store->AppendEvent(event)));
  }
  using Names = std::vector<std::string>;
  EXPECT_EQ(Messages(*store, "i1", {}), (Names{"created", "e0", "e1", "e2", "e3", "e4"}));
  EXPECT_EQ(Messages(*store, "i1", {.limit = 2}), (Names{"created", "e0"}));
  EXPECT_EQ(Messages(*store, "i1", {.newest_first = true, .limit = 2}), (Names{"e4", "e3"}));
  EXPECT_EQ(Messages(*store, "i1", {.since = start + 2s}), (Names{"e2", "e3", "e4"}));
  EXPECT_EQ(Messages(*store, "i1", {.since = start, .until = start + 1s}), (Names{"e0", "e1"}));
  EXPECT_EQ(Messages(*store, "i1", {.levels = {"warn", "error"}}), (Names{"e1", "e3"}));
  EXPECT_EQ(Messages(*store, "i1", {.text = "4"}), Names{"e4"});
  EXPECT_EQ(Messages(*store, "nobody", {}), Names{});
}

TEST_P(StoreTest, OldEventsOfASandboxAreDeleted) {
  auto store = Open({.max_events = 20});
  ASSERT_TRUE(Await(io_, store->InsertSandbox(Row("i1"), Event("i1", "created"))));
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(Await(io_, store->AppendEvent(Event("i1", std::to_string(i)))));
  auto kept = Messages(*store, "i1", {});
  EXPECT_GE(kept.size(), 20u);
  EXPECT_LE(kept.size(), 23u);  // a tenth more, until the next deletion
  EXPECT_EQ(kept.back(), "99");
}

TEST_P(StoreTest, EndedSandboxesAreForgottenAfterTheRetention) {
  {
    auto store = Open();
    for (auto [id, days] : {std::pair{"old", 40}, {"young", 1}}) {
      SandboxRow row = Row(id);
      ASSERT_TRUE(Await(io_, store->InsertSandbox(row, Event(id, "created"))));
      row.state = "killed";
      row.ended_at = Now() - std::chrono::hours(24 * days);
      ASSERT_TRUE(Await(io_, store->UpdateSandbox(row, Event(id, "killed"))));
    }
    ASSERT_TRUE(Await(io_, store->InsertSandbox(Row("live"), Event("live", "created"))));
  }
  auto store = Open({.retention = {.days = 30}});
  ASSERT_TRUE(Await(io_, store->Write([](Transaction&) { return Status(); })));  // after the chore
  EXPECT_FALSE(Await(io_, store->GetSandbox("old")).value());
  EXPECT_TRUE(Messages(*store, "old", {}).empty());
  EXPECT_TRUE(Await(io_, store->GetSandbox("young")).value());
  EXPECT_TRUE(Await(io_, store->GetSandbox("live")).value());
}

TEST_P(StoreTest, KeysComeBackInOrder) {
  auto store = Open();
  Time now = Now();
  ASSERT_TRUE(Await(io_, store->AddApiKey({"b", "second", "h2", "e2b_2…", now + 1s, {}})));
  ASSERT_TRUE(Await(io_, store->AddApiKey({"a", "first", "h1", "e2b_1…", now, now + 5s})));
  EXPECT_EQ(Await(io_, store->AddApiKey({"c", "same", "h1", "", now, {}})).error().code(),
            Code::kAlreadyExists);
  auto keys = Await(io_, store->ListApiKeys()).value();
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0].name, "first");
  EXPECT_EQ(keys[0].revoked_at, now + 5s);
  EXPECT_EQ(keys[1].hash, "h2");
}

TEST_P(StoreTest, TemplateUseIsCounted) {
  auto store = Open();
  SandboxRow last = Row("i2");
  last.started_at += 5s;
  ASSERT_TRUE(Await(io_, store->InsertSandbox(Row("i1"), Event("i1", "created"))));
  ASSERT_TRUE(Await(io_, store->InsertSandbox(last, Event("i2", "created"))));
  auto uses = Await(io_, store->ListTemplateUse()).value();
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].template_id, "base");
  EXPECT_EQ(uses[0].sandboxes, 2);
  EXPECT_EQ(uses[0].last_started_at, last.started_at);
}

Task<void> InsertOne(Store& store, std::string id, int& succeeded) {
  if (co_await store.InsertSandbox(Row(id), Event(id, "created"))) ++succeeded;
}

TEST_P(StoreTest, ManyCallersAtOnceShareTransactionsButNotFailures) {
  auto store = Open();
  int succeeded = 0;
  TaskGroup group(io_.get_executor());
  for (int i = 0; i < 500; ++i)  // ids 0..399, the rest are duplicates
    group.Spawn("insert", InsertOne(*store, "i" + std::to_string(i % 400), succeeded));
  EXPECT_TRUE(Await(io_, group.Join(30s)));
  EXPECT_EQ(succeeded, 400);
  EXPECT_EQ(Await(io_, store->ListLiveSandboxes()).value().size(), 400u);
}

TEST_P(StoreTest, AFullQueueRefusesInsteadOfGrowing) {
  auto store = Open({.max_queue = 1});
  int succeeded = 0;
  TaskGroup group(io_.get_executor());
  for (int i = 0; i < 200; ++i)
    group.Spawn("insert", InsertOne(*store, "i" + std::to_string(i), succeeded));
  EXPECT_TRUE(Await(io_, group.Join(30s)));
  EXPECT_GE(succeeded, 1);
  EXPECT_LT(succeeded, 200);
  EXPECT_EQ(Await(io_, store->ListLiveSandboxes()).value().size(), static_cast<size_t>(succeeded));
}

TEST_P(StoreTest, RefusesANewerSchemaWithAClearText) {
  Open();
  ASSERT_TRUE(
      database_.Open()->Script("INSERT INTO schema_version VALUES (99, 'from the future', 0)"));
  auto refused = OpenStore(database_.url(), io_.get_executor());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
}

// Writes rows for ever and tells through the pipe which are committed.
[[noreturn]] void WriteUntilKilled(const std::string& url, int pipe_fd) {
  asio::io_context io;
  auto store = OpenStore(url, io.get_executor());
  if (!store) _exit(1);
  for (int32_t i = 0;; ++i) {
    std::string id = "i" + std::to_string(i);
    if (!Await(io, (*store)->InsertSandbox(Row(id), Event(id, "created")))) _exit(2);
    if (write(pipe_fd, &i, sizeof(i)) != sizeof(i)) _exit(3);
  }
}

TEST_P(StoreTest, NothingThatWasReportedWrittenIsLostByKill9) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) WriteUntilKilled(database_.url(), fds[1]);
  close(fds[1]);
  int32_t last = -1, read_value = 0;
  while (last < 200 && read(fds[0], &read_value, sizeof(read_value)) == sizeof(read_value))
    last = read_value;
  kill(child, SIGKILL);  // in the middle of some write
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed by itself: " << WEXITSTATUS(status);
  while (read(fds[0], &read_value, sizeof(read_value)) == sizeof(read_value)) last = read_value;
  close(fds[0]);
  ASSERT_GE(last, 200);

  auto store = Open();
  auto live = Await(io_, store->ListLiveSandboxes()).value();
  // The one after `last` may be committed without having been reported.
  EXPECT_GE(live.size(), static_cast<size_t>(last) + 1);
  EXPECT_LE(live.size(), static_cast<size_t>(last) + 2);
  for (const SandboxRow& row : live)
    EXPECT_EQ(Messages(*store, row.id, {}), std::vector<std::string>{"created"}) << row.id;
  if (database_.postgres()) return;
  auto db = database_.Open();
  auto check = db->Query("PRAGMA integrity_check").value();
  ASSERT_TRUE(check.Step().value());
  EXPECT_EQ(check.Text(0), "ok");
}

// A SQLite file is one server's, whatever the server is called.
TEST(SqliteStore, DoesNotAskWhoseSandboxItIs) {
  testing::TestDatabase database("sqlite");
  asio::io_context io;
  auto open = [&](std::string node) {
    return OpenStore(database.url(), io.get_executor(), {.node = std::move(node)}).value();
  };
  EXPECT_TRUE(Await(io, open("")->InsertSandbox(Row("i1"), Event("i1", "created"))));
  EXPECT_EQ(Await(io, open("a")->ListLiveSandboxes())->size(), 1u);
}

TEST(OpenStore, RefusesOtherDatabases) {
  asio::io_context io;
  auto refused = OpenStore("mysql://localhost/x", io.get_executor());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace caisson::store

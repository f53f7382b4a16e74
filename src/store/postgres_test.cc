// What only PostgreSQL does: connections that go away, other servers, conflicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "store/account_rows.h"
#include "store/flow_rows.h"
#include "store/migrations.h"
#include "store/store.h"
#include "store/testing.h"

namespace caisson::store {
namespace {

using namespace std::chrono_literals;
using caisson::testing::Await;
using ::testing::HasSubstr;
using ::testing::Not;

UserRow User(std::string id) {
  return {.id = id, .name = id, .role = "member", .created_at = Now()};
}

class PostgresTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> OpenStore(StoreOptions options = {}) {
    return store::OpenStore(database_.url(), io_.get_executor(), std::move(options)).value();
  }
  template <class Job>
  auto Write(Job job) {
    return Await(io_, store_->Write(std::move(job)));
  }
  int64_t CountUsers() {
    return Await(io_, store_->Read([](Transaction& tx) { return tx.Count(Select<UserRow>()); }))
        .value();
  }
  // Cuts every connection to the database but the caller's.
  static void CutConnections(Database& person, const std::string& which = "true") {
    auto cut = person.Query(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() AND " +
        which);
    ASSERT_TRUE(cut) << cut.error().message();
    ASSERT_TRUE(cut->Step().value());
  }
  // Runs the loop until `done`; a test hangs here for at most half a minute.
  bool WaitUntil(const std::function<bool()>& done) {
    auto end = std::chrono::steady_clock::now() + 30s;
    io_.restart();
    auto work = asio::make_work_guard(io_);
    while (!done() && std::chrono::steady_clock::now() < end) io_.run_one_for(50ms);
    return done();
  }

  testing::TestDatabase database_{"postgresql"};
  asio::io_context io_;
  std::unique_ptr<Store> store_ = OpenStore();
  std::unique_ptr<Database> person_ = database_.Open();
};

TEST_F(PostgresTest, AJobWhoseConnectionIsLostIsRunAgain) {
  int runs = 0;
  Status done = Write([&](Transaction& tx) -> Status {
    TRY(tx.Insert(User("u" + std::to_string(++runs))));
    if (runs == 1) CutConnections(*person_);
    return tx.Insert(User("second"));
  });
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(CountUsers(), 2);
}

TEST_F(PostgresTest, AnIdleConnectionThatWasCutIsNotNoticed) {
  EXPECT_EQ(CountUsers(), 0);
  CutConnections(*person_);
  EXPECT_TRUE(Write([](Transaction& tx) { return tx.Insert(User("ann")); }));
  EXPECT_EQ(CountUsers(), 1);
}

TEST_F(PostgresTest, ACommitThatWasCutIsUnknown) {
  // Makes COMMIT wait, so that it can be met.
  ASSERT_TRUE(person_->Script(
      "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN PERFORM pg_sleep(30); RETURN NULL; END $$; "
      "CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON users DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION wait()"));
  std::atomic<bool> met = false;
  std::thread cutter([&] {
    auto end = std::chrono::steady_clock::now() + 20s;
    while (!met && std::chrono::steady_clock::now() < end) {
      auto rows = person_->Query(
          "SELECT count(*) FROM pg_stat_activity WHERE query = 'COMMIT' AND state = 'active' AND "
          "datname = current_database()");
      met = rows && rows->Step().value() && rows->Int(0) == 1;
    }
    CutConnections(*person_);
  });
  int runs = 0;
  Status done = Write([&](Transaction& tx) {
    ++runs;
    return tx.Insert(User("ann"));
  });
  cutter.join();
  ASSERT_TRUE(met);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::kUnavailable);
  EXPECT_THAT(done.error().message(), HasSubstr("not known"));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(CountUsers(), 0);
}

TEST_F(PostgresTest, ADeadlockRunsTheJobAgain) {
  for (const char* id : {"ann", "bob"})
    ASSERT_TRUE(Write([id](Transaction& tx) { return tx.Insert(User(id)); }));
  auto lock = [](Database& database, const char* id) {
    return database.Run("UPDATE users SET role = 'viewer' WHERE id = ?", std::string_view(id));
  };
  ASSERT_TRUE(person_->Script("SET deadlock_timeout = '20s'; BEGIN"));
  ASSERT_TRUE(lock(*person_, "ann"));
  std::thread other;
  int runs = 0;
  Status done = Write([&](Transaction& tx) -> Status {
    Database& database = tx.database();
    TRY(database.Script("SET LOCAL deadlock_timeout = '500ms'"));
    TRY(lock(database, "bob"));
    if (++runs == 1)
      other = std::thread([&] {
        EXPECT_TRUE(lock(*person_, "bob"));
        EXPECT_TRUE(person_->Script("COMMIT"));
      });
    return lock(database, "ann");
  });
  other.join();
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_EQ(runs, 2);
}

TEST_F(PostgresTest, CallsWaitForADatabaseThatIsAwayButNotForEver) {
  store_ = OpenStore({.patience = 500ms});
  std::string name = database_.url().substr(database_.url().rfind('/') + 1);
  auto administrator = OpenDatabase(testing::PostgresUrl()).value();
  auto allow = [&](const char* value) {
    return administrator->Script(
        fmt::format("ALTER DATABASE {} WITH ALLOW_CONNECTIONS {}", name, value));
  };
  ASSERT_TRUE(allow("false"));
  CutConnections(*person_);
  Status late = Write([](Transaction& tx) { return tx.Insert(User("ann")); });
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kUnavailable);
  ASSERT_TRUE(allow("true"));
  EXPECT_TRUE(Write([](Transaction& tx) { return tx.Insert(User("ann")); }));
  EXPECT_EQ(CountUsers(), 1);
}

TEST_F(PostgresTest, EventsOfOtherServersAreAnnounced) {
  auto other = OpenStore();
  int heard = 0, heard_by_other = 0;
  store_->OnEvents([&] { ++heard; });
  other->OnEvents([&] { ++heard_by_other; });
  auto emit = [](Transaction& tx) { return tx.Emit({.at = Now(), .type = "log"}); };
  // One for having begun to listen, one for the event.
  ASSERT_TRUE(Write(emit));
  EXPECT_TRUE(WaitUntil([&] { return heard_by_other >= 1; }));
  int before = heard;
  ASSERT_TRUE(Await(io_, other->Write(emit)));
  EXPECT_TRUE(WaitUntil([&] { return heard > before; }));

  // The same after the connections were lost.
  CutConnections(*person_, "query LIKE 'LISTEN%'");
  before = heard;
  EXPECT_TRUE(WaitUntil([&] { return heard > before; }));
  before = heard;
  ASSERT_TRUE(Await(io_, other->Write(emit)));
  EXPECT_TRUE(WaitUntil([&] { return heard > before; }));
}

// Emits now and then, from many places.
Task<void> EmitSome(Store& store, int& failed) {
  for (int i = 0; i < 10; ++i)
    if (!co_await store.Write([](Transaction& tx) -> Status {
          TRY(tx.Emit({.at = Now(), .type = "log"}));
          TRY(tx.Emit({.at = Now(), .type = "log"}));
          return {};
        }))
      ++failed;
}

TEST_F(PostgresTest, WhoHasSeenAnEventHasSeenAllBeforeIt) {
  auto other = OpenStore();
  int failed = 0;
  std::atomic<bool> done = false;
  int64_t seen = 0, holes = 0;
  // Reads the log as it grows; an id that turns up below one already seen is a hole.
  std::thread reader([&] {
    std::vector<int64_t> ids;
    for (bool last = false; !last;) {
      last = done;
      auto rows = person_->Query("SELECT id FROM events ORDER BY id").value();
      size_t at = 0;
      while (rows.Step().value()) {
        int64_t id = rows.Int(0);
        if (at < ids.size() && ids[at] != id) ++holes;
        if (at >= ids.size()) ids.push_back(id);
        ++at;
      }
    }
    seen = static_cast<int64_t>(ids.size());
  });
  TaskGroup group(io_.get_executor());
  for (int i = 0; i < 10; ++i) group.Spawn("emit", EmitSome(i % 2 ? *store_ : *other, failed));
  EXPECT_TRUE(Await(io_, group.Join(60s)));
  done = true;
  reader.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(holes, 0);
  EXPECT_EQ(seen, 200);
}

TEST_F(PostgresTest, SandboxesOfOtherServersAreNotItsOwn) {
  auto a = OpenStore({.node = "a"}), b = OpenStore({.node = "b"});
  SandboxRow row{.id = "i1", .state = "running"};
  SandboxEvent event{.sandbox_id = "i1", .type = "created"};
  ASSERT_TRUE(Await(io_, a->InsertSandbox(row, event)));
  ASSERT_TRUE(Await(io_, a->InsertSnapshot({.id = "s1", .sandbox_id = "i1"}, event)));
  EXPECT_EQ(Await(io_, a->ListLiveSandboxes())->size(), 1u);
  EXPECT_EQ(Await(io_, a->ListSnapshots())->size(), 1u);
  EXPECT_TRUE(Await(io_, b->ListLiveSandboxes())->empty());
  EXPECT_TRUE(Await(io_, b->ListSnapshots())->empty());
  EXPECT_TRUE(*Await(io_, b->GetSandbox("i1")));
}

TEST_F(PostgresTest, AStepWhoseRowSomebodyHoldsIsLeftForLater) {
  Time now = Now();
  ASSERT_TRUE(Write([&](Transaction& tx) -> Status {
    TRY(tx.Insert(User("ann")));
    for (const char* id : {"r1", "r2"}) {
      TRY(tx.Insert(RunRow{.id = id, .owner_id = "ann", .created_at = now}));
      TRY(tx.Insert(StepRow{.id = id, .run_id = id, .name = "only", .run_at = now}));
    }
    return {};
  }));
  auto claim = [&] {
    ClaimQuery query{.lease_owner = "me", .now = now + 1h, .lease_until = now + 2h};
    auto step = Write([query](Transaction& tx) { return ClaimStep(tx, query); }).value();
    return step ? step->id : "";
  };
  ASSERT_TRUE(person_->Script("BEGIN; SELECT * FROM steps WHERE id = 'r1' FOR UPDATE"));
  EXPECT_EQ(claim(), "r2");
  EXPECT_EQ(claim(), "");
  ASSERT_TRUE(person_->Script("ROLLBACK"));
  EXPECT_EQ(claim(), "r1");
}

TEST_F(PostgresTest, TextThatItCannotHoldIsMadeReadable) {
  ASSERT_TRUE(Write([](Transaction& tx) {
    UserRow user = User("ann");
    user.password_hash = std::string("a\0b\xff", 4);
    return tx.Insert(user);
  }));
  auto user = Write([](Transaction& tx) { return tx.Need<UserRow>("ann", "user"); });
  EXPECT_EQ(user->password_hash,
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd");
}

TEST_F(PostgresTest, ThePoolGrowsWithItsUseAndIsBounded) {
  store_ = OpenStore({.pool_min = 3, .pool_max = 5});
  auto slow = [](Store& store) -> Task<void> {
    auto slept = co_await store.Read(
        [](Transaction& tx) { return tx.database().Run("SELECT pg_sleep(0.2)"); });
    EXPECT_TRUE(slept) << slept.error().message();
  };
  TaskGroup group(io_.get_executor());
  for (int i = 0; i < 9; ++i) group.Spawn("read", slow(*store_));
  EXPECT_TRUE(Await(io_, group.Join(30s)));
  // The writer, and as many readers as leave room for the listener.
  EXPECT_EQ(store_->pool().connections, 4);
  EXPECT_EQ(store_->pool().waiting, 0);
}

TEST(Postgres, ABadUrlIsNotRepeated) {
  asio::io_context io;
  auto refused = OpenStore("postgresql://me:hunter2@[host/x", io.get_executor());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message(), Not(HasSubstr("hunter2")));
  refused = OpenStore("postgresql://me:hunter2@host:port/x", io.get_executor());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), Not(HasSubstr("hunter2")));
}

TEST(Postgres, AWrongPasswordIsSaid) {
  asio::io_context io;
  std::string url = testing::PostgresUrl();
  size_t at = url.find('@');
  auto refused = OpenStore(url.insert(at, "x"), io.get_executor());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("password authentication failed"));
  EXPECT_THAT(refused.error().message(), Not(HasSubstr(url.substr(at - 8, 8))));
}

}  // namespace
}  // namespace caisson::store

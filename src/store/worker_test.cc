// What becomes of the jobs of a batch when SQLite ends their transaction by itself.
#include "store/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <latch>

#include "base/testing.h"
#include "store/sqlite_database.h"

namespace caisson::store {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Access = Database::Access;
using Job = std::function<Status(Database&)>;

// No file can grow beyond `bytes`, which is what a disk that is full does.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() {
    EXPECT_TRUE(
        Open().value()->Script("CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB) STRICT;"
                               "INSERT INTO t (id) VALUES (0)"));
  }
  Result<std::unique_ptr<Database>> Open() { return SqliteDatabase::Open(dir_ / "a.db"); }

  static Status Insert(Database& database, int64_t id, int64_t bytes = 0) {
    return database.Run("INSERT INTO t VALUES (?, zeroblob(?))", id, bytes);
  }
  static Job Inserts(int64_t id, int64_t bytes = 0) {
    return [=](Database& database) { return Insert(database, id, bytes); };
  }
  // Fails, and has SQLite undo all that the transaction did.
  static Status CostTheTransaction(Database& database) {
    return database.Run("INSERT OR ROLLBACK INTO t (id) VALUES (0)");
  }

  Task<void> Submit(Worker& worker, Job job, std::string& said) {
    Status done = co_await worker.Submit(Access::kWrite, std::move(job));
    said = done ? "done" : done.error().message();
  }
  // Runs the jobs in one batch; gives what each was told.
  std::vector<std::string> RunTogether(std::vector<Job> jobs) {
    std::latch all_wait(1);
    auto wait = [&](Database&) {
      all_wait.wait();
      return std::chrono::seconds(1h);
    };
    std::vector<std::string> said(jobs.size());
    Worker worker(Open().value(), [this] { return Open(); }, io_.get_executor(), {.chore = wait});
    TaskGroup group(io_.get_executor());
    for (size_t i = 0; i < jobs.size(); ++i)
      group.Spawn("job", Submit(worker, std::move(jobs[i]), said[i]));
    io_.restart();
    io_.poll();
    EXPECT_EQ(worker.numbers().waiting, jobs.size());
    all_wait.count_down();
    EXPECT_TRUE(caisson::testing::Await(io_, group.Join(30s)));
    return said;
  }
  std::vector<int64_t> Ids() {
    auto database = Open().value();
    auto rows = database->Query("SELECT id FROM t WHERE id > 0 ORDER BY id").value();
    std::vector<int64_t> ids;
    while (rows.Step().value()) ids.push_back(rows.Int(0));
    return ids;
  }

  caisson::testing::TempDir dir_;
  asio::io_context io_;
};

TEST_F(WorkerTest, AJobThatCostsTheTransactionFailsAlone) {
  int runs = 0;
  auto said = RunTogether({Inserts(1),
                           [&](Database& database) -> Status {
                             ++runs;
                             TRY(Insert(database, 2));
                             return CostTheTransaction(database);
                           },
                           Inserts(3), Inserts(4)});
  EXPECT_THAT(said,
              ElementsAre("done", HasSubstr("UNIQUE constraint failed: t.id"), "done", "done"));
  EXPECT_THAT(Ids(), ElementsAre(1, 3, 4));
  EXPECT_EQ(runs, 2);
}

// Its later statements would be transactions of their own.
TEST_F(WorkerTest, AJobThatTakesNoNoticeFailsAllTheSame) {
  auto ignore = [](Database& database) -> Status {
    TRY(Insert(database, 2));
    EXPECT_FALSE(CostTheTransaction(database));
    return {};
  };
  auto go_on = [](Database& database) -> Status {
    auto later = database.Query("INSERT INTO t (id) VALUES (3)").value();
    EXPECT_FALSE(CostTheTransaction(database));
    EXPECT_FALSE(later.Step());
    EXPECT_FALSE(database.Script("INSERT INTO t (id) VALUES (3)"));
    return Insert(database, 3);
  };
  auto why = HasSubstr("UNIQUE constraint failed: t.id");
  EXPECT_THAT(RunTogether({Inserts(1), ignore, go_on, Inserts(4)}),
              ElementsAre("done", why, why, "done"));
  EXPECT_THAT(RunTogether({ignore}), ElementsAre(why));
  EXPECT_THAT(RunTogether({go_on}), ElementsAre(why));
  EXPECT_THAT(Ids(), ElementsAre(1, 4));
}

// What it wrote could not be told apart from what the others did.
TEST_F(WorkerTest, AJobWhoseSavepointCannotBeEndedFailsAlone) {
  auto end_it = [](Database& database) -> Status {
    TRY(Insert(database, 2));
    return database.Script("RELEASE job");
  };
  EXPECT_THAT(RunTogether({Inserts(1), end_it, Inserts(3)}),
              ElementsAre("done", HasSubstr("no such savepoint"), "done"));
  EXPECT_THAT(Ids(), ElementsAre(1, 3));
}

TEST_F(WorkerTest, AJobThatIsTooMuchForTheDiskFailsAlone) {
  // One that fails when it is committed, and one that is written while it runs.
  for (int64_t bytes : {1'000'000, 8'000'000}) {
    std::vector<std::string> said;
    {
      FileLimit limit(500'000);
      said = RunTogether({Inserts(bytes + 1), Inserts(bytes + 2, bytes), Inserts(bytes + 3)});
    }
    EXPECT_THAT(said, ElementsAre("done", HasSubstr("disk I/O error"), "done")) << bytes;
  }
  EXPECT_THAT(Ids(), ElementsAre(1'000'001, 1'000'003, 8'000'001, 8'000'003));
}

}  // namespace
}  // namespace caisson::store

#include "store/database.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "store/migrations.h"
#include "store/sqlite_database.h"
#include "store/testing.h"

namespace caisson::store {
namespace {

class BothDatabasesTest : public testing::DatabaseTest {
 protected:
  std::unique_ptr<Database> db_ = database_.Open();
};
CAISSON_ON_BOTH_DATABASES(BothDatabasesTest);

TEST_P(BothDatabasesTest, BindAndReadEveryKind) {
  ASSERT_TRUE(db_->Script("CREATE TABLE t (a TEXT, b BIGINT, c BIGINT, d BIGINT, e REAL)"));
  std::string odd("quotes ' \" ? and \xc3\xa9");
  Time now = Now();
  ASSERT_TRUE(db_->Run("INSERT INTO t VALUES (?,?,?,?,?)", odd, int64_t{-5'000'000'000}, now,
                       std::optional<Time>(), 0.25));
  EXPECT_EQ(db_->changes(), 1);
  auto rows = db_->Query("SELECT a, b, c, d, e FROM t").value();
  ASSERT_TRUE(rows.Step().value());
  EXPECT_EQ(rows.Text(0), odd);
  EXPECT_EQ(rows.Int(1), -5'000'000'000);
  EXPECT_EQ(rows.TimeAt(2), now);
  EXPECT_EQ(rows.OptionalTimeAt(3), std::nullopt);
  EXPECT_EQ(rows.Real(4), 0.25);
  EXPECT_FALSE(rows.Step().value());
}

TEST_P(BothDatabasesTest, SayWhatIsWrongInTheSameWords) {
  ASSERT_TRUE(
      db_->Script("CREATE TABLE p (a TEXT PRIMARY KEY, b TEXT NOT NULL CHECK (b <> 'bad'));"
                  "CREATE TABLE c (a TEXT REFERENCES p (a));"));
  constexpr const char* kInsert = "INSERT INTO p VALUES (?, ?)";
  using Text = std::string;
  EXPECT_TRUE(db_->Run(kInsert, Text("x"), Text("")));
  EXPECT_EQ(db_->Run(kInsert, Text("x"), Text("")).error().code(), Code::kAlreadyExists);
  EXPECT_EQ(db_->Run(kInsert, Text("z"), Text("bad")).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(db_->Run(kInsert, Text("z"), std::optional<Text>()).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(db_->Run("INSERT INTO c VALUES (?)", Text("y")).error().code(), Code::kNotFound);
  EXPECT_EQ(db_->Run("DELETE FROM nothing").error().code(), Code::kInternal);
  EXPECT_TRUE(db_->Run(kInsert, Text("y"), Text("")));  // the statement is usable after an error
}

TEST_P(BothDatabasesTest, SortByBytes) {
  ASSERT_TRUE(Migrate(*db_));
  for (const char* name : {"b", "B", "a", "\xc3\xa9"})
    ASSERT_TRUE(db_->Run("INSERT INTO users VALUES (?, ?, 'member', '', 0, NULL, '')",
                         std::string_view(name), std::string_view(name)));
  auto rows = db_->Query("SELECT name FROM users ORDER BY name").value();
  std::string order;
  while (rows.Step().value()) order += rows.Text(0);
  EXPECT_EQ(order, "Bab\xc3\xa9");
}

// No file can be opened any more, which is what a process meets that may write nowhere else.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    UniqueFd next(dup(STDOUT_FILENO));
    rlimit now{.rlim_cur = static_cast<rlim_t>(next.get()), .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &now);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// The server may write nowhere but beside its database: a large batch would fail half way.
TEST(SqliteDatabase, WritesNoTemporaryFiles) {
  caisson::testing::TempDir dir;
  auto db = SqliteDatabase::Open(dir / "a.db").value();
  ASSERT_TRUE(db->Script("CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB) STRICT"));
  for (int64_t i = 0; i < 1'000; ++i)
    ASSERT_TRUE(db->Run("INSERT INTO t VALUES (?, zeroblob(4000))", i));
  NoMoreFiles limit;
  ASSERT_TRUE(db->Begin(Database::Access::kWrite));
  ASSERT_TRUE(db->Script("SAVEPOINT job"));
  // 4 MB to undo: SQLite keeps 64 KB in memory, and then it would open a file.
  Status done = db->Run("UPDATE t SET b = randomblob(4000)");
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_TRUE(db->Script("ROLLBACK TO job; RELEASE job"));
  EXPECT_TRUE(db->Commit());
  auto rows = db->Query("SELECT count(*) FROM t WHERE b <> zeroblob(4000)").value();
  ASSERT_TRUE(rows.Step().value());
  EXPECT_EQ(rows.Int(0), 0);
}

TEST(SqliteDatabase, IsReadableByItsOwnerOnly) {
  caisson::testing::TempDir dir;
  auto db = SqliteDatabase::Open(dir / "a.db").value();
  ASSERT_TRUE(db->Script("CREATE TABLE t (a TEXT) STRICT"));
  for (const char* name : {"a.db", "a.db-wal"}) {
    struct stat info;
    ASSERT_EQ(stat((dir / name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << name;
  }
}

TEST(SqliteDatabase, SaysInWordsThatAFileIsDamaged) {
  caisson::testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir / "a.db", std::string(8192, 'x'), 0600));
  auto opened = SqliteDatabase::Open(dir / "a.db");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kDataLoss);
  EXPECT_NE(opened.error().message().find("is damaged or is not a database"), std::string::npos);
  EXPECT_NE(opened.error().message().find("restore a backup"), std::string::npos);
}

TEST(SqliteDatabase, SaysWhereItCannotBe) {
  auto opened = SqliteDatabase::Open("/nonexistent-directory/a.db");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kNotFound);
  EXPECT_NE(opened.error().message().find("/nonexistent-directory/a.db"), std::string::npos);
}

}  // namespace
}  // namespace caisson::store

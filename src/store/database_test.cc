#include "store/database.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/testing.h"

namespace caisson::store {
namespace {

TEST(Database, BindsAndReadsEveryKind) {
  testing::TempDir dir;
  auto db = Database::Open(dir / "a.db").value();
  ASSERT_TRUE(db.Script("CREATE TABLE t (a TEXT, b INTEGER, c INTEGER, d INTEGER) STRICT"));
  std::string odd("nul\0 and \xc3\xa9", 11);
  Time now = Now();
  ASSERT_TRUE(
      db.Run("INSERT INTO t VALUES (?,?,?,?)", odd, int64_t{-5}, now, std::optional<Time>()));
  EXPECT_EQ(db.changes(), 1);
  auto rows = db.Query("SELECT a, b, c, d FROM t").value();
  ASSERT_TRUE(rows.Step().value());
  EXPECT_EQ(rows.Text(0), odd);
  EXPECT_EQ(rows.Int(1), -5);
  EXPECT_EQ(rows.TimeAt(2), now);
  EXPECT_EQ(rows.OptionalTimeAt(3), std::nullopt);
  EXPECT_FALSE(rows.Step().value());
}

TEST(Database, StatementsAreReusableAfterAnError) {
  testing::TempDir dir;
  auto db = Database::Open(dir / "a.db").value();
  ASSERT_TRUE(db.Script("CREATE TABLE t (a TEXT PRIMARY KEY) STRICT"));
  constexpr const char* kInsert = "INSERT INTO t VALUES (?)";
  EXPECT_TRUE(db.Run(kInsert, std::string("x")));
  EXPECT_EQ(db.Run(kInsert, std::string("x")).error().code(), Code::kAlreadyExists);
  EXPECT_TRUE(db.Run(kInsert, std::string("y")));
}

TEST(Database, IsReadableByItsOwnerOnly) {
  testing::TempDir dir;
  auto db = Database::Open(dir / "a.db").value();
  ASSERT_TRUE(db.Script("CREATE TABLE t (a TEXT) STRICT"));
  for (const char* name : {"a.db", "a.db-wal"}) {
    struct stat info;
    ASSERT_EQ(stat((dir / name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << name;
  }
}

TEST(Database, SaysInWordsThatAFileIsDamaged) {
  testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir / "a.db", std::string(8192, 'x'), 0600));
  auto opened = Database::Open(dir / "a.db");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kDataLoss);
  EXPECT_NE(opened.error().message().find("is damaged or is not a database"), std::string::npos);
  EXPECT_NE(opened.error().message().find("restore a backup"), std::string::npos);
}

TEST(Database, SaysWhereItCannotBe) {
  auto opened = Database::Open("/nonexistent-directory/a.db");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kNotFound);
  EXPECT_NE(opened.error().message().find("/nonexistent-directory/a.db"), std::string::npos);
}

}  // namespace
}  // namespace caisson::store

#include "store/backup.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/testing.h"
#include "store/sqlite_database.h"
#include "store/testing.h"

namespace caisson::store {
namespace {

int64_t Count(Database& database) {
  auto rows = database.Query("SELECT count(*) FROM t").value();
  return rows.Step().value() ? rows.Int(0) : -1;
}

TEST(BackupTest, CopiesWhatIsCommittedWhileAnotherWrites) {
  caisson::testing::TempDir dir;
  auto writer = SqliteDatabase::Open(dir / "a.db").value();
  ASSERT_TRUE(writer->Script("CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('one')"));
  ASSERT_TRUE(writer->Begin(Database::Access::kWrite));
  ASSERT_TRUE(writer->Run("INSERT INTO t VALUES ('two')"));

  auto reader = SqliteDatabase::Open(dir / "a.db").value();
  Status copied = Backup(*reader, dir / "copy.db");
  ASSERT_TRUE(copied) << copied.error().message();
  ASSERT_TRUE(writer->Commit());
  struct stat info{};
  ASSERT_EQ(stat((dir / "copy.db").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(Count(*SqliteDatabase::Open(dir / "copy.db").value()), 1);
  EXPECT_EQ(Count(*writer), 2);
}

TEST(BackupTest, OverwritesNothingAndLeavesNothingHalf) {
  caisson::testing::TempDir dir;
  auto database = SqliteDatabase::Open(dir / "a.db").value();
  ASSERT_TRUE(WriteFileAtomic(dir / "there", "mine", 0600));
  EXPECT_EQ(Backup(*database, dir / "there").error().code(), Code::kAlreadyExists);
  EXPECT_EQ(ReadFile(dir / "there").value(), "mine");
  EXPECT_FALSE(Backup(*database, dir / "missing/copy"));
  // What a copy that was cut off has left is no obstacle.
  ASSERT_TRUE(WriteFileAtomic(dir / "b.db.partial", "half", 0600));
  EXPECT_TRUE(Backup(*database, dir / "b.db"));
  struct stat info{};
  EXPECT_NE(stat((dir / "b.db.partial").c_str(), &info), 0);
}

}  // namespace
}  // namespace caisson::store

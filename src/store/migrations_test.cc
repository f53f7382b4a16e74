#include "store/migrations.h"

#include <gtest/gtest.h>

#include "base/testing.h"

namespace caisson::store {
namespace {

int64_t CountTables(Database& db) {
  auto rows = db.Query(
      "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
      "AND name <> 'schema_version'");
  EXPECT_TRUE(rows->Step().value());
  return rows->Int(0);
}

TEST(Migrations, AreNumberedWithoutGaps) {
  int64_t expected = 1;
  for (const Migration& step : Migrations()) EXPECT_EQ(step.version, expected++);
}

TEST(Migrations, GoUpDownAndUpAgain) {
  testing::TempDir dir;
  auto db = Database::Open(dir / "a.db").value();
  ASSERT_TRUE(Migrate(db));
  int64_t newest = Migrations().back().version;
  EXPECT_EQ(SchemaVersion(db).value(), newest);
  int64_t tables = CountTables(db);
  EXPECT_GE(tables, 3);

  auto down = Migrate(db, 0);
  ASSERT_TRUE(down) << down.error().message();
  EXPECT_EQ(SchemaVersion(db).value(), 0);
  EXPECT_EQ(CountTables(db), 0);

  ASSERT_TRUE(Migrate(db));
  ASSERT_TRUE(Migrate(db));  // nothing to do the second time
  EXPECT_EQ(CountTables(db), tables);
}

TEST(Migrations, RefuseASchemaFromTheFuture) {
  testing::TempDir dir;
  auto db = Database::Open(dir / "a.db").value();
  ASSERT_TRUE(Migrate(db));
  ASSERT_TRUE(db.Script("INSERT INTO schema_version VALUES (99, 'from the future', 0)"));
  auto refused = Migrate(db);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(refused.error().message().find("schema version 99"), std::string::npos);
}

}  // namespace
}  // namespace caisson::store

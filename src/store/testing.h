// For tests only: an empty database of each kind.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/testing.h"
#include "store/open_database.h"

namespace caisson::store::testing {

// The URL of a PostgreSQL's administrator: CAISSON_TEST_POSTGRES, else one is started that ends
// with this program. A test that needs it and cannot have it fails.
std::string PostgresUrl();

// A new database that goes away with this; `kind` is "sqlite" or "postgresql".
class TestDatabase {
 public:
  explicit TestDatabase(const std::string& kind);
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  const std::string& url() const { return url_; }
  bool postgres() const { return !name_.empty(); }
  // A connection besides those of the store.
  std::unique_ptr<Database> Open() const;

 private:
  caisson::testing::TempDir dir_;
  std::string name_;  // of the PostgreSQL database
  std::string url_;
};

// TEST_P of a class derived from this runs on both.
class DatabaseTest : public ::testing::TestWithParam<const char*> {
 protected:
  TestDatabase database_{GetParam()};
  asio::io_context io_;
};
#define CAISSON_ON_BOTH_DATABASES(Suite)                                         \
  INSTANTIATE_TEST_SUITE_P(On, Suite, ::testing::Values("sqlite", "postgresql"), \
                           [](const auto& test) { return std::string(test.param); })

}  // namespace caisson::store::testing

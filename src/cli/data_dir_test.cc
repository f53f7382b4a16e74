#include "cli/data_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/testing.h"

namespace caisson::cli {
namespace {

using namespace std::chrono_literals;

TEST(DataDir, FindsTheDatabaseOfAUrl) {
  EXPECT_EQ(FindDatabase("sqlite:////var/lib/x/a.db").dir, "/var/lib/x");
  EXPECT_EQ(FindDatabase("sqlite:////var/lib/x/a.db").file, "a.db");
  EXPECT_EQ(FindDatabase("sqlite:///var/lib/x/a.db").dir, "/var/lib/x");
  EXPECT_EQ(FindDatabase("postgresql://host/db").dir, "");
}

// Locks as another process and returns whether that worked.
bool OtherProcessCanLock(const Config& config) {
  pid_t child = fork();
  if (child == 0) _exit(LockDataDir(config, 0ms) ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(DataDir, OneServerAtATime) {
  caisson::testing::TempDir dir;
  Config config;
  config.data_dir = dir.path();
  auto lock = LockDataDir(config, 0ms);
  ASSERT_TRUE(lock);
  EXPECT_FALSE(OtherProcessCanLock(config));
  lock->Reset();
  EXPECT_TRUE(OtherProcessCanLock(config));
}

TEST(DataDir, IsPreparedForThisUser) {
  caisson::testing::TempDir dir;
  Config config;
  config.data_dir = dir / "data";
  ASSERT_TRUE(FinishConfig(config));
  ServerUser self{"self", getuid(), getgid()};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(PrepareDataDir(config, self));
  struct stat info;
  ASSERT_EQ(stat(config.data_dir.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0711u);
  ASSERT_EQ(stat((config.data_dir + "/db").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_EQ(info.st_uid, getuid());
}

TEST(DataDir, ADirectoryThatIsALinkIsRefused) {
  caisson::testing::TempDir dir;
  Config config;
  config.data_dir = dir.path();
  ASSERT_TRUE(FinishConfig(config));
  ASSERT_EQ(symlink("/tmp", (dir / "db").c_str()), 0);
  Status prepared = PrepareDataDir(config, {"self", getuid(), getgid()});
  ASSERT_FALSE(prepared);
  EXPECT_THAT(prepared.error().message(), ::testing::HasSubstr("/db"));
}

TEST(DataDir, ADatabaseElsewhereNeedsNoDirectory) {
  caisson::testing::TempDir dir;
  Config config;
  config.data_dir = dir.path();
  config.database_url = "postgresql://host/db";
  ASSERT_TRUE(FinishConfig(config));
  ASSERT_TRUE(PrepareDataDir(config, {"self", getuid(), getgid()}));
  struct stat info;
  EXPECT_NE(stat((dir / "db").c_str(), &info), 0);
}

}  // namespace
}  // namespace caisson::cli

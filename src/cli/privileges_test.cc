#include "cli/privileges.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "base/testing.h"

namespace caisson::cli {
namespace {

// Runs `check` in a child that has given root up; it returns the number of the first failed check,
// or 0.
int AsServer(const ServerUser& user, const std::string& dir, int (*check)()) {
  pid_t child = fork();
  if (child == 0) _exit(DropPrivileges(user, dir) ? check() : 100);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

class PrivilegesTest : public ::testing::Test {
 protected:
  PrivilegesTest() {
    auto found = FindServerUser("auto");
    EXPECT_TRUE(found);
    user_ = *found;
    // Out of the user's reach, as in somebody's home.
    EXPECT_EQ(mkdir((outer_ / "closed").c_str(), 0700), 0);
    dir_ = outer_ / "closed/db";
    EXPECT_EQ(mkdir(dir_.c_str(), 0700), 0);
    EXPECT_EQ(chown(dir_.c_str(), user_.uid, user_.gid), 0);
  }

  caisson::testing::TempDir outer_;
  ServerUser user_;
  std::string dir_;
};

TEST_F(PrivilegesTest, NothingOfRootIsLeft) {
  EXPECT_EQ(AsServer(user_, dir_,
                     [] {
                       uid_t real, effective, saved;
                       getresuid(&real, &effective, &saved);
                       if (real == 0 || effective == 0 || saved == 0) return 1;
                       if (setuid(0) == 0 || setgid(0) == 0) return 2;
                       std::ifstream status("/proc/self/status");
                       for (std::string line; std::getline(status, line);) {
                         bool none = line.find_first_not_of("0 \t", line.find(':') + 1) ==
                                     std::string::npos;
                         if (line.starts_with("Cap") && !none) return 3;
                         if (line.starts_with("Groups:") && !none) return 4;
                       }
                       if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return 5;
                       if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2) return 6;
                       if (unshare(CLONE_NEWUSER) == 0 || errno != EPERM) return 7;
                       return prctl(PR_GET_DUMPABLE) == 0 ? 0 : 8;
                     }),
            0);
}

TEST_F(PrivilegesTest, OnlyItsOwnDirectoryCanBeWritten) {
  EXPECT_EQ(AsServer(user_, dir_,
                     [] {
                       std::string file = std::string(kWritableDir) + "/caisson.db";
                       if (open(file.c_str(), O_WRONLY | O_CREAT, 0600) < 0) return 1;
                       if (open("/tmp/x", O_WRONLY | O_CREAT, 0600) >= 0 || errno != EROFS)
                         return 2;
                       return open("/dev/null", O_WRONLY) < 0 ? 3 : 0;
                     }),
            0);
  struct stat info;
  ASSERT_EQ(stat((dir_ + "/caisson.db").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, user_.uid);
}

TEST_F(PrivilegesTest, NothingCanBeWrittenWithoutADirectory) {
  EXPECT_EQ(AsServer(user_, "",
                     [] {
                       if (open("/tmp/x", O_WRONLY | O_CREAT, 0600) >= 0 || errno != EROFS)
                         return 1;
                       const char* home = getenv("HOME");
                       return home && home == FindServerUser("auto")->home ? 0 : 2;
                     }),
            0);
}

TEST_F(PrivilegesTest, TheHostSeesNoMount) {
  ASSERT_EQ(AsServer(user_, dir_, [] { return 0; }), 0);
  auto mounts = ReadFile("/proc/self/mountinfo");
  ASSERT_TRUE(mounts);
  EXPECT_EQ(mounts->find(kWritableDir), std::string::npos);
}

TEST(ServerUser, MustExistAndNotBeRoot) {
  EXPECT_EQ(FindServerUser("root").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(FindServerUser("no-such-user-here").error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace caisson::cli

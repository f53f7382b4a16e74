#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"

namespace caisson {
namespace {

struct Pair {
  UniqueFd a, b;
  Pair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    a.Reset(fds[0]);
    b.Reset(fds[1]);
  }
};

TEST(FdMessage, CarriesDataAndDescriptors) {
  Pair pair;
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  UniqueFd reader(pipe_fds[0]), writer(pipe_fds[1]);
  ASSERT_TRUE(SendMessage(pair.a.get(), "hello", {writer.get()}));
  writer.Reset();
  auto message = ReceiveMessage(pair.b.get(), 100);
  ASSERT_TRUE(message) << message.error().message();
  EXPECT_EQ(message->data, "hello");
  ASSERT_EQ(message->fds.size(), 1u);
  ASSERT_EQ(write(message->fds[0].get(), "x", 1), 1);
  char c = 0;
  EXPECT_EQ(read(reader.get(), &c, 1), 1);
  EXPECT_EQ(c, 'x');
}

TEST(FdMessage, TooLongIsAnErrorAndEndIsUnavailable) {
  Pair pair;
  ASSERT_TRUE(SendMessage(pair.a.get(), "0123456789"));
  EXPECT_EQ(ReceiveMessage(pair.b.get(), 5).error().code(), Code::kOutOfRange);
  pair.a.Reset();
  EXPECT_EQ(ReceiveMessage(pair.b.get(), 5).error().code(), Code::kUnavailable);
}

TEST(File, AtomicWriteHasItsModeAndReplaces) {
  std::string dir = std::filesystem::temp_directory_path() / "caisson-file-test";
  ASSERT_TRUE(RemoveTree(dir));
  std::filesystem::create_directories(dir + "/a/b");
  ASSERT_TRUE(WriteFileAtomic(dir + "/a/key", "one", 0600));
  ASSERT_TRUE(WriteFileAtomic(dir + "/a/key", "two", 0600));
  EXPECT_EQ(ReadFile(dir + "/a/key").value(), "two");
  struct stat info;
  ASSERT_EQ(stat((dir + "/a/key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(ReadFile(dir + "/a/key", 2).error().code(), Code::kOutOfRange);
  std::filesystem::create_symlink("/etc", dir + "/a/b/link");
  ASSERT_TRUE(RemoveTree(dir));
  EXPECT_FALSE(std::filesystem::exists(dir));
  EXPECT_TRUE(std::filesystem::exists("/etc/passwd"));
  EXPECT_TRUE(RemoveTree(dir)) << "removing what is not there succeeds";
}

}  // namespace
}  // namespace caisson

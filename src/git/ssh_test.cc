#include "git/ssh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include "base/file.h"
#include "base/testing.h"
#include "git/pkt_line.h"
#include "git/ssh_process.h"

namespace caisson::git {
namespace {

using caisson::testing::Await;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Ssh, TheCommandNamesOneRepositoryAndTrustsOneFile) {
  SshAccess access{.key_file = "/keys/deploy", .known_hosts = "/keys/hosts"};
  Repository repository{.owner = "o", .name = "r", .ssh = "[::1]:2222"};
  auto argv = SshCommand(access, repository, "git-upload-pack");
  EXPECT_EQ(argv[0], "ssh");
  for (const char* option : {"BatchMode=yes", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes",
                             "UserKnownHostsFile=/keys/hosts", "IdentityFile=/keys/deploy"})
    EXPECT_THAT(argv, Contains(option));
  EXPECT_THAT(std::vector(argv.end() - 3, argv.end()),
              ElementsAre("--", "git@::1", "git-upload-pack 'o/r.git'"));
  EXPECT_THAT(argv, Contains("2222"));
  repository.ssh = "example.com";
  EXPECT_THAT(SshCommand(access, repository, "git-receive-pack"), Contains("22"));
}

TEST(Ssh, OnlyAVersionOfTheProtocolIsHandedOn) {
  EXPECT_THAT(SshEnvironment("version=2"), Contains("GIT_PROTOCOL=version=2"));
  for (const char* other : {"", "version=2\nX=1", "a b", "$(id)"})
    EXPECT_THAT(SshEnvironment(other), ElementsAre("LC_ALL=C")) << other;
}

TEST(Ssh, FailuresAreExplained) {
  struct Case {
    std::string_view said;
    unsigned status;
    std::string_view text;
  };
  for (const Case& one :
       {Case{"No ED25519 host key is known for h and you have requested strict checking.\n"
             "Host key verification failed.\n",
             403, "connects only to hosts in git_ssh_known_hosts"},
        Case{"@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
             "Host key verification failed.\n",
             403, "is not the one in git_ssh_known_hosts"},
        Case{"git@h: Permission denied (publickey).\n", 403, "refused the server's SSH key"},
        Case{"ERROR: Repository not found.\nfatal: Could not read from remote repository.\n", 404,
             "ERROR: Repository not found."},
        Case{"ERROR: The key you are authenticating with has been marked as read only.\n", 403,
             "marked as read only"},
        Case{"ssh: connect to host h port 22: Connection refused\n", 502, "Connection refused"},
        Case{"", 502, "without a word"}}) {
    SshFailure failure = ExplainSsh("h", one.said);
    EXPECT_EQ(failure.status, one.status) << one.said;
    EXPECT_THAT(failure.text, HasSubstr(std::string(one.text)));
  }
}

TEST(Ssh, SettingsAreCheckedBeforeTheyAreNeeded) {
  caisson::testing::TempDir dir;
  EXPECT_TRUE(CheckSsh({}));
  ASSERT_TRUE(WriteFileAtomic(dir / "key", "k", 0600));
  EXPECT_THAT(CheckSsh({.key_file = dir / "key"}).error().message(),
              HasSubstr("needs git_ssh_known_hosts"));
  EXPECT_THAT(CheckSsh({.key_file = dir / "none", .known_hosts = dir / "key"}).error().message(),
              HasSubstr("git_ssh_key_file"));
  EXPECT_TRUE(CheckSsh({.key_file = dir / "key", .known_hosts = dir / "key"}));
}

TEST(PacketScanner, FindsTheFlushInAnyPieces) {
  std::string list = Packet("version 2\n") + Packet("0000 is no flush here") + "0000";
  std::string bytes = list + "more";
  for (size_t size = 1; size <= bytes.size(); ++size) {
    PacketScanner scanner;
    size_t used = 0;
    for (size_t at = 0; at < bytes.size() && !scanner.flushed(); at += size) {
      auto fed = scanner.Feed(std::string_view(bytes).substr(at, size));
      ASSERT_TRUE(fed);
      used += *fed;
    }
    EXPECT_TRUE(scanner.flushed()) << size;
    EXPECT_EQ(used, list.size()) << size;
  }
  PacketScanner scanner;
  EXPECT_FALSE(scanner.Feed("SSH-2.0"));
}

class SshProcessTest : public ::testing::Test {
 protected:
  std::unique_ptr<SshProcess> Start(std::string script, int stall_ms = 20'000) {
    auto started = SshProcess::Start(io_.get_executor(), {"sh", "-c", script}, {"SEEN=yes"},
                                     std::chrono::milliseconds(stall_ms));
    EXPECT_TRUE(started) << started.error().message();
    return std::move(*started);
  }
  asio::io_context io_;
};

TEST_F(SshProcessTest, TalksAndTellsHowItEnded) {
  auto process = Start("read line; echo \"$line $SEEN ${HOME-none}\"; echo oops >&2; exit 7");
  ASSERT_TRUE(Await(io_, process->Write("hello\n")));
  auto said = Await(io_, process->Read());
  ASSERT_TRUE(said);
  EXPECT_EQ(*said, "hello yes none\n");
  EXPECT_EQ(*Await(io_, process->Read()), "");
  EXPECT_EQ(*Await(io_, process->Wait()), 7);
  EXPECT_EQ(process->errors(), "oops\n");
  // Nobody reads any more, and no signal comes.
  EXPECT_FALSE(Await(io_, process->Write(std::string(1 << 20, 'x'))));
}

TEST_F(SshProcessTest, SilenceHasADeadlineAndTheEndIsTheEnd) {
  auto process = Start("echo $$; exec sleep 600", 3'000);
  auto pid = Await(io_, process->Read());
  ASSERT_TRUE(pid);
  std::string directory = "/proc/" + std::string(pid->substr(0, pid->find('\n')));
  auto nothing = Await(io_, process->Read());
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code(), Code::kDeadlineExceeded);
  process.reset();
  EXPECT_NE(access(directory.c_str(), F_OK), 0) << "killed and reaped";
}

TEST_F(SshProcessTest, AProgramThatIsNotThereIsSaid) {
  auto started =
      SshProcess::Start(io_.get_executor(), {"no-such-program"}, {}, std::chrono::seconds(1));
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message(), HasSubstr("no-such-program"));
}

}  // namespace
}  // namespace caisson::git

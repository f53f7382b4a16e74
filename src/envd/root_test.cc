// What needs root: other users, and being PID 1 of a pid namespace.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/encoding.h"
#include "base/file.h"
#include "envd/test_program.h"
#include "envd/test_support.h"

namespace caisson::envd {
namespace {

using testing::HasSubstr;
using testing::Not;

http::Headers As(const std::string& user) {
  return {{"Authorization", "Basic " + Base64Encode(user + ":")}};
}

class UserTest : public Fixture {
 protected:
  void SetUp() override {
    ASSERT_EQ(geteuid(), 0u) << "these tests need root";
    chmod(dir.c_str(), 0755);
    Boot();
  }
  const User& nobody = *Accounts::Current()->Find("nobody");
};

TEST_F(UserTest, RunsAsTheUserThatWasAskedFor) {
  json::object request = BashRequest("id -un; id -G; echo $HOME $USER; whoami");
  request["process"].as_object()["cwd"] = "/";
  Outcome outcome = Run(request, As("nobody"));
  EXPECT_EQ(outcome.out,
            "nobody\n" + std::to_string(nobody.gid) + "\n" + nobody.home + " nobody\nnobody\n")
      << outcome.err;
  // No way back, and no rights kept.
  request = BashRequest("grep -E 'Cap(Prm|Eff)' /proc/self/status; cat /etc/shadow");
  request["process"].as_object()["cwd"] = "/";
  outcome = Run(request, As("nobody"));
  EXPECT_EQ(outcome.out, "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n");
  EXPECT_THAT(outcome.err, HasSubstr("Permission denied"));
  EXPECT_EQ(Run(request, As("root")).err, "");
}

TEST_F(UserTest, ADirectoryTheUserMayNotEnterIsRefused) {
  mkdir(Path("private").c_str(), 0700);
  json::object request = BashRequest("true");
  request["process"].as_object()["cwd"] = Path("private");
  EXPECT_EQ(Run(request, As("nobody")).error.at("code").as_string(), "invalid_argument");
}

TEST_F(UserTest, TheTerminalBelongsToTheUser) {
  json::object request = BashRequest("stat -c %U $(tty); echo x > $(tty)");
  request["process"].as_object()["cwd"] = "/";
  request["pty"] = json::object();
  EXPECT_THAT(Run(request, As("nobody")).pty, HasSubstr("nobody\r\nx\r\n"));
}

TEST_F(UserTest, WhatIsMadeBelongsToTheUser) {
  Http("POST", "/files?username=nobody&path=" + Path("up/load"),
       {{"Content-Type", "application/octet-stream"}}, "x");
  Unary("filesystem.Filesystem/MakeDir", {{"path", Path("made/dir")}}, As("nobody"));
  Http("POST", "/files?username=nobody&path=" + Path("rooty"),
       {{"Content-Type", "application/octet-stream"}}, "x");
  for (auto name : {"up", "up/load", "made", "made/dir", "rooty"}) {
    struct stat st{};
    ASSERT_EQ(stat(Path(name).c_str(), &st), 0) << name;
    EXPECT_EQ(st.st_uid, nobody.uid) << name;
    EXPECT_EQ(st.st_gid, nobody.gid) << name;
  }
  json::value entry =
      Unary("filesystem.Filesystem/Stat", {{"path", Path("up/load")}}).Json().at("entry");
  EXPECT_EQ(entry.at("owner").as_string(), "nobody");
  // A file of root's that nobody uploads to changes hands, too.
  WriteFile("taken", "root's");
  Http("POST", "/files?username=nobody&path=" + Path("taken"),
       {{"Content-Type", "application/octet-stream"}}, "mine");
  struct stat st{};
  stat(Path("taken").c_str(), &st);
  EXPECT_EQ(st.st_uid, nobody.uid);
}

// Files that the sandboxed envd must not write on this machine.
std::string machine_id_file;

// Inside new mount and pid namespaces: our own /proc, /run, machine-id.
void MakeSandbox() {
  mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  mount("proc", "/proc", "proc", 0, nullptr);
  mount("tmpfs", "/run", "tmpfs", 0, nullptr);
  mount(machine_id_file.c_str(), "/etc/machine-id", nullptr, MS_BIND, nullptr);
  mount("tmpfs", "/mnt", "tmpfs", 0, "size=1m,nr_inodes=10");
  setpriority(PRIO_PROCESS, 0, -5);
}

class InitTest : public Unbooted {
 protected:
  void SetUp() override {
    ASSERT_EQ(geteuid(), 0u) << "these tests need root";
    WriteFile("machine-id", "");
    machine_id_file = Path("machine-id");
    port = FreePort();
    program = std::make_unique<Program>(ProgramOptions{
        .config = json::serialize(
            json::object{{"sandboxId", "iinit"}, {"defaultUser", "root"}, {"port", port}}),
        .environment = {{"CAISSON_MEMORY_BYTES", "1073741824"},
                        {"CAISSON_CPUS", "2"},
                        {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
        .namespaces = CLONE_NEWPID | CLONE_NEWNS,
        .before_exec = MakeSandbox});
    ASSERT_EQ(program->Answer(), "R");
  }
  std::unique_ptr<Program> program;
};

TEST_F(InitTest, IsPidOneAndReapsOrphans) {
  EXPECT_EQ(Bash("cat /proc/1/comm").out, "caisson-envd\n");
  Bash("for i in $(seq 1 20); do (sleep 0.05 &) ; done");
  EXPECT_TRUE(Until(
      [&] { return Bash("pgrep -x sleep; grep -l '^State:.Z' /proc/[0-9]*/status").out.empty(); }));
  EXPECT_EQ(Bash("echo done").out, "done\n");
}

TEST_F(InitTest, CannotBeKilledFromInside) {
  Bash("kill -TERM 1; kill -INT 1; kill -STOP 1; kill -KILL 1; sleep 0.2");
  EXPECT_EQ(Http("GET", "/health").status, 204u);
}

TEST_F(InitTest, ChildrenAreNotAsImportantAsEnvd) {
  Outcome outcome = Bash("ps -o ni= -p 1; ps -o ni= -p $$; cat /proc/self/oom_score_adj");
  EXPECT_EQ(outcome.out, " -5\n  0\n100\n");
}

TEST_F(InitTest, TheEnvironmentOfEnvdStaysInside) {
  EXPECT_THAT(Bash("env").out, Not(HasSubstr("CAISSON")));
}

TEST_F(InitTest, WritesTheIdentityOfTheSandbox) {
  std::string id = HexEncode(Sha256("iinit")).substr(0, 32) + "\n";
  EXPECT_TRUE(Until([&] { return ReadBack("machine-id") == id; })) << ReadBack("machine-id");
  EXPECT_EQ(Bash("cat /run/e2b/.E2B_SANDBOX_ID").out, "iinit");
}

TEST_F(InitTest, ANewIdentityIsWrittenOverWhateverTheSandboxPutThere) {
  auto init = [&](std::string id, bool reset) {
    return Http("POST", "/init", {},
                json::serialize(json::object{{"sandboxId", id}, {"resetIdentity", reset}}))
        .status;
  };
  std::string old_id = HexEncode(Sha256("iinit")).substr(0, 32) + "\n";
  EXPECT_EQ(init("isecond", false), 204u);
  EXPECT_EQ(Bash("cat /run/e2b/.E2B_SANDBOX_ID; echo -$E2B_SANDBOX_ID").out, "isecond-isecond\n");
  EXPECT_EQ(ReadBack("machine-id"), old_id);
  std::string host = Bash("hostname").out;
  Bash(
      "cd /run/e2b; rm .E2B_SANDBOX_ID; mkfifo .E2B_SANDBOX_ID; "
      "echo keep > /run/victim; ln -sf /run/victim .E2B_TEMPLATE_ID; "
      "echo a longer text than before > .E2B_SANDBOX");
  EXPECT_EQ(init("i3", true), 204u);
  EXPECT_EQ(Bash("cat /run/e2b/.E2B_SANDBOX_ID /run/e2b/.E2B_SANDBOX /run/victim").out,
            "i3truekeep\n");
  EXPECT_EQ(ReadBack("machine-id"), HexEncode(Sha256("i3")).substr(0, 32) + "\n");
  EXPECT_EQ(Bash("hostname").out, host);
}

TEST_F(InitTest, MetricsUseTheLimits) {
  json::value metrics = Http("GET", "/metrics").Json();
  EXPECT_EQ(metrics.at("mem_total").as_int64(), 1 << 30);
  EXPECT_EQ(metrics.at("cpu_count").as_int64(), 2);
}

TEST_F(InitTest, AFullDiskIs507) {
  http::Headers type{{"Content-Type", "application/octet-stream"}};
  Reply full = Http("POST", "/files?path=/mnt/big", type, std::string(4 << 20, 'x'));
  EXPECT_EQ(full.status, 507u);
  EXPECT_EQ(full.body,
            R"({"code":507,"message":"attempted to write 4194304 bytes: not enough disk space )"
            R"(available"})");
  Bash("rm /mnt/*; for i in $(seq 1 20); do touch /mnt/$i; done");
  EXPECT_EQ(Http("POST", "/files?path=/mnt/one/more", type, "x").status, 507u);
  EXPECT_EQ(Http("POST", "/files?path=/mnt/more", type, "x").status, 507u);
}

TEST_F(InitTest, ATimeoutFindsDescendantsInOtherSessions) {
  Outcome outcome = Bash("setsid sleep 77 & setsid bash -c 'sleep 78 & wait' & wait",
                         {{"Connect-Timeout-Ms", "500"}});
  EXPECT_EQ(outcome.error.at("code").as_string(), "deadline_exceeded");
  EXPECT_TRUE(Until([&] { return Bash("pgrep -x sleep").out.empty(); }));
}

TEST_F(InitTest, ATreeThatKeepsForkingIsKilledCompletely) {
  // At most a handful at a time, and each soon loses its parent; only the session tells whose it
  // is.
  Outcome outcome =
      Bash("while :; do (sleep 0.04 &); sleep 0.01; done", {{"Connect-Timeout-Ms", "700"}});
  EXPECT_EQ(outcome.error.at("code").as_string(), "deadline_exceeded");
  // What is left is the asking bash itself. A tree that went on would never be gone.
  EXPECT_TRUE(Until([&] { return Bash("pgrep -cx 'sleep|bash'; true").out == "1\n"; }));
}

}  // namespace
}  // namespace caisson::envd

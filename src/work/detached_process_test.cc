#include "work/detached_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/id.h"
#include "base/testing.h"

namespace caisson::work {
namespace {

// Runs commands on this machine instead of in a sandbox.
class DetachedTest : public ::testing::Test {
 protected:
  DetachedTest() : name_("test-" + RandomHex(8)) {}
  ~DetachedTest() override {
    (void)End();
    for (const char* suffix : {"", ".old"}) (void)RemoveTree("/tmp/.caisson/" + name_ + suffix);
  }

  sdk::CommandResult RunHere(const sdk::Command& command) {
    std::string in = dir_ / "in", out = dir_ / "out", err = dir_ / "err";
    EXPECT_TRUE(WriteFileAtomic(in, command.stdin_text, 0600));
    pid_t pid = fork();
    if (pid == 0) {
      if (!freopen(in.c_str(), "r", stdin) || !freopen(out.c_str(), "w", stdout) ||
          !freopen(err.c_str(), "w", stderr))
        _exit(99);
      for (const auto& [key, value] : command.env) setenv(key.c_str(), value.c_str(), 1);
      if (!command.cwd.empty() && chdir(command.cwd.c_str()) != 0) _exit(98);
      std::vector<char*> argv;
      for (const std::string& arg : command.argv) argv.push_back(const_cast<char*>(arg.c_str()));
      argv.push_back(nullptr);
      execvp(argv[0], argv.data());
      _exit(97);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    sdk::CommandResult result;
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.stdout_text = ReadFile(out, 1 << 20).value();
    result.stderr_text = ReadFile(err, 1 << 20).value();
    if (command.on_output) {
      command.on_output(sdk::Stream::kStdout, result.stdout_text);
      command.on_output(sdk::Stream::kStderr, result.stderr_text);
    }
    return result;
  }
  static Task<Result<sdk::CommandResult>> Done(sdk::CommandResult result) { co_return result; }
  static Task<Result<sdk::CommandResult>> Dead() {
    co_return Fail(Code::kUnavailable, "the server is gone");
  }
  CommandRunner Runner() {
    return [this](sdk::Command command) { return Done(RunHere(command)); };
  }

  sdk::Command Shell(const std::string& script) {
    sdk::Command command;
    command.argv = {"/bin/sh", "-c", script};
    command.cwd = dir_.path();
    command.timeout = std::chrono::seconds(60);
    return command;
  }
  Result<sdk::CommandResult> Run(sdk::Command command) {
    return testing::Await(io_, RunDetached(Runner(), name_, std::move(command)));
  }
  Status End() { return testing::Await(io_, EndDetached(Runner(), name_, "user")); }

  testing::TempDir dir_;
  asio::io_context io_;
  std::string name_;
};

TEST_F(DetachedTest, GivesInputOutputVariablesAndStatus) {
  sdk::Command command = Shell("cat; echo \"$WORD\"; pwd; echo bad >&2; exit 3");
  command.stdin_text = "from the task\n";
  command.env = {{"WORD", "a 'quoted' word"}};
  std::string seen;
  command.on_output = [&](sdk::Stream stream, std::string_view piece) {
    if (stream == sdk::Stream::kStdout) seen += piece;
  };
  auto result = Run(command);
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(seen, "from the task\na 'quoted' word\n" + dir_.path() + "\n");
  EXPECT_EQ(result->stderr_text, "bad\n");
}

TEST_F(DetachedTest, IsStartedOnceAndToldFromTheBeginningEveryTime) {
  sdk::Command command = Shell("echo x >> count; cat count; echo end");
  EXPECT_EQ(Run(command)->stdout_text, "x\nend\n");
  EXPECT_EQ(Run(command)->stdout_text, "x\nend\n");
  EXPECT_EQ(ReadFile(dir_ / "count", 100).value(), "x\n");
  ASSERT_TRUE(End());
  EXPECT_EQ(Run(command)->stdout_text, "x\nx\nend\n");
}

TEST_F(DetachedTest, OutlivesWhoFollowsIt) {
  sdk::Command command = Shell("echo begun; while [ ! -e go ]; do sleep 0.1; done; echo over");
  // A server that dies right after the start: only the first two commands are run.
  int left = 2;
  CommandRunner dying = [this, &left](sdk::Command one) {
    return left-- > 0 ? Done(RunHere(one)) : Dead();
  };
  auto lost = testing::Await(io_, RunDetached(dying, name_, command));
  EXPECT_EQ(lost.error().code(), Code::kUnavailable);
  ASSERT_TRUE(WriteFileAtomic(dir_ / "go", "", 0600));
  auto result = Run(command);
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->stdout_text, "begun\nover\n");
}

TEST_F(DetachedTest, EndsWithEverythingItStarted) {
  int left = 2;
  CommandRunner dying = [this, &left](sdk::Command one) {
    return left-- > 0 ? Done(RunHere(one)) : Dead();
  };
  sdk::Command command = Shell("sleep 600 & echo $! >new; mv new child; wait");
  EXPECT_FALSE(testing::Await(io_, RunDetached(dying, name_, command)));
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  auto waiting = [&] { return std::chrono::steady_clock::now() < deadline; };
  while (!ReadFile(dir_ / "child", 100) && waiting()) usleep(10'000);
  pid_t child = std::atoi(ReadFile(dir_ / "child", 100).value().c_str());
  ASSERT_GT(child, 1);
  ASSERT_TRUE(End());
  while (kill(child, 0) == 0 && waiting()) usleep(10'000);
  EXPECT_EQ(kill(child, 0), -1);
}

TEST_F(DetachedTest, WhatItLeftRunningOutlivesItsFiles) {
  sdk::Command command = Shell("sleep 600 >/dev/null 2>&1 & echo $!");
  auto result = Run(command);
  ASSERT_TRUE(result) << result.error().message();
  pid_t child = std::atoi(result->stdout_text.c_str());
  ASSERT_GT(child, 1);
  ASSERT_TRUE(testing::Await(io_, ForgetDetached(Runner(), name_, "user")));
  EXPECT_EQ(access(("/tmp/.caisson/" + name_).c_str(), F_OK), -1);
  EXPECT_EQ(kill(child, SIGKILL), 0);
}

TEST_F(DetachedTest, EndsAtItsTime) {
  sdk::Command command = Shell("echo begun; sleep 600");
  command.timeout = std::chrono::seconds(4);  // time enough to begin
  auto result = Run(command);
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_TRUE(result->timed_out);
  EXPECT_EQ(result->stdout_text, "begun\n");
}

TEST_F(DetachedTest, ThatVanishesIsMissed) {
  // Kills the shell around it, which would have written the status.
  std::string pid = "/tmp/.caisson/" + name_ + "/pid";
  auto result = Run(Shell("while [ ! -e " + pid + " ]; do sleep 0.1; done; kill -KILL $(cat " +
                          pid + "); sleep 600"));
  EXPECT_EQ(result.error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace caisson::work

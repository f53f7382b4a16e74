// The client against the real envd.
#include "sdk/envd_client.h"

#include <signal.h>

#include <fstream>

#include "base/file.h"
#include "sdk/test_support.h"
#include "sdk/utf8_decoder.h"

namespace caisson::sdk {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

bool Lives(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(stat, text);
  return !text.empty() && text.find(") Z ") == std::string::npos;
}

class EnvdClientTest : public EnvdFixture {
 protected:
  // The pid that a script wrote to `name`; 0 if it did not.
  pid_t PidIn(const std::string& name) {
    std::ifstream file(dir_ / name);
    pid_t pid = 0;
    file >> pid;
    return pid;
  }
  // A process that starts another one in a session of its own; both write their pids.
  std::string Family() {
    return fmt::format(
        "setsid bash -c 'echo $$ > {0}/child; sleep 300' & echo $$ > {0}/parent; "
        "while [ ! -s {0}/child ]; do sleep 0.01; done; echo ready; wait",
        dir_.path());
  }
  void ExpectFamilyGone() {
    for (const char* name : {"parent", "child"}) {
      pid_t pid = PidIn(name);
      ASSERT_GT(pid, 0) << name;
      for (int i = 0; i < 3000 && Lives(pid); ++i) Await(Pause());
      EXPECT_FALSE(Lives(pid)) << name;
    }
  }
  static Task<Result<bool>> Pause() {
    co_await SleepFor(10ms);
    co_return true;
  }
};

TEST_F(EnvdClientTest, GivesOutputAndExitCode) {
  auto result = Await(Client().Run(Bash("echo out; echo err >&2; exit 3")));
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->stdout_text, "out\n");
  EXPECT_EQ(result->stderr_text, "err\n");
  EXPECT_FALSE(result->timed_out);
  EXPECT_FALSE(result->truncated);
}

TEST_F(EnvdClientTest, ASignalIsAnExitCode) {
  EXPECT_EQ(Await(Client().Run(Bash("kill -9 $$")))->exit_code, 137);
  EXPECT_EQ(Await(Client().Run(Bash("kill -TERM $$")))->exit_code, 143);
}

TEST_F(EnvdClientTest, ArgumentsAreNotReadByAShell) {
  Command command = Bash("");
  command.argv = {"printf", "%s|", "a b", "$(id)", "; echo no", "é\n"};
  EXPECT_EQ(Await(Client().Run(command))->stdout_text, "a b|$(id)|; echo no|é\n|");
}

TEST_F(EnvdClientTest, HasDirectoryVariablesAndInput) {
  Command command = Bash("pwd; echo $NAME; cat");
  command.cwd = dir_.path();
  command.env = {{"NAME", "a value"}};
  command.stdin_text = std::string(700'000, 'x');
  auto result = Await(Client().Run(command));
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->stdout_text, dir_.path() + "\na value\n" + command.stdin_text);
}

TEST_F(EnvdClientTest, InputThatNobodyReadsDoesNotHoldTheCommand) {
  Command command = Bash("exec 0<&-; echo done");
  command.stdin_text = std::string(3'000'000, 'x');
  EXPECT_EQ(Await(Client().Run(command))->stdout_text, "done\n");
}

TEST_F(EnvdClientTest, LongOutputIsCutInTheResultAndWholeInTheStream) {
  Command command = Bash("head -c 5000000 /dev/zero | tr '\\0' x; echo end >&2");
  size_t seen = 0;
  command.on_output = [&](Stream stream, std::string_view piece) {
    if (stream == Stream::kStdout) seen += piece.size();
  };
  auto result = Await(Client().Run(command));
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(seen, 5'000'000u);
  EXPECT_EQ(result->stdout_text.size(), size_t{1} << 20);
  EXPECT_EQ(result->stderr_text, "end\n");
  EXPECT_TRUE(result->truncated);
}

TEST_F(EnvdClientTest, CharactersAreNotCutByPieces) {
  // Each byte of the euro sign comes alone.
  Command command = Bash("printf '\\342'; sleep 0.1; printf '\\202'; sleep 0.1; printf '\\254!'");
  std::vector<std::string> pieces;
  command.on_output = [&](Stream, std::string_view piece) { pieces.emplace_back(piece); };
  EXPECT_EQ(Await(Client().Run(command))->stdout_text, "€!");
  EXPECT_THAT(pieces, ::testing::ElementsAre("€!"));
}

TEST_F(EnvdClientTest, BytesThatAreNoTextBecomeReplacementCharacters) {
  auto result = Await(Client().Run(Bash("printf 'a\\377b\\0c\\342'")));
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->stdout_text, std::string("a\xEF\xBF\xBD"
                                             "b\0c\xEF\xBF\xBD",
                                             10));
}

TEST_F(EnvdClientTest, ATimeoutEndsTheWholeTree) {
  Command command = Bash(Family());
  command.timeout = 4s;  // time enough for both to begin
  auto result = Await(Client().Run(command));
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_TRUE(result->timed_out);
  EXPECT_EQ(result->exit_code, 137);
  EXPECT_EQ(result->stdout_text, "ready\n");
  ExpectFamilyGone();
}

TEST_F(EnvdClientTest, CancelingEndsTheWholeTree) {
  auto client = Client();
  TaskGroup group(io_.get_executor());
  std::optional<Result<CommandResult>> result;
  Command command = Bash(Family());
  command.on_output = [&](Stream, std::string_view) { group.Cancel(); };
  group.Spawn(
      "command",
      [](EnvdClient& from, Command what, std::optional<Result<CommandResult>>& to) -> Task<void> {
        to.emplace(co_await from.Run(std::move(what)));
      }(client, std::move(command), result));
  EXPECT_TRUE(
      Await([](TaskGroup& of) -> Task<Result<bool>> { co_return co_await of.Join(60s); }(group))
          .value());
  ASSERT_TRUE(result);
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code(), Code::kCanceled);
  ExpectFamilyGone();
}

TEST_F(EnvdClientTest, CancelingBeforeTheStartIsKnownLeavesNothing) {
  auto client = Client();
  TaskGroup group(io_.get_executor());
  group.Spawn("command", [](EnvdClient& from, Command what) -> Task<void> {
    (void)co_await from.Run(std::move(what));
  }(client, Bash(Family())));
  // The request has not even been written.
  io_.poll_one();
  group.Cancel();
  EXPECT_TRUE(
      Await([](TaskGroup& of) -> Task<Result<bool>> { co_return co_await of.Join(60s); }(group))
          .value());
  EXPECT_TRUE(Await(client.ListProcesses())->empty());
}

TEST_F(EnvdClientTest, TheEndOfEnvdIsUnavailable) {
  Command command = Bash("echo $$; exec sleep 300");
  std::string pid;
  command.on_output = [&](Stream, std::string_view text) {
    pid = text;
    kill(program_.pid(), SIGKILL);
  };
  auto result = Await(Client().Run(command));
  // Here nothing else ends it: outside of a sandbox, envd takes no process namespace with it.
  ASSERT_GT(atoi(pid.c_str()), 1);
  kill(atoi(pid.c_str()), SIGKILL);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kUnavailable);
  EXPECT_THAT(result.error().message(), HasSubstr("before the end of the command was told"));
  EXPECT_EQ(Await(Client().Run(Bash("true"))).error().code(), Code::kUnavailable);
}

TEST_F(EnvdClientTest, WhatCannotStartIsAnError) {
  Command command = Bash("");
  command.argv = {"no-such-program"};
  EXPECT_EQ(Await(Client().Run(command)).error().code(), Code::kInvalidArgument);
  command = Bash("true");
  command.cwd = "/no/such/directory";
  EXPECT_EQ(Await(Client().Run(command)).error().code(), Code::kInvalidArgument);
  command.argv.clear();
  EXPECT_EQ(Await(Client().Run(command)).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Await(Client("a wrong token").Run(Bash("true"))).error().code(),
            Code::kUnauthenticated);
  command = Bash("true");
  command.user = "nobody-here";
  EXPECT_EQ(Await(Client().Run(command)).error().code(), Code::kInvalidArgument);
}

TEST_F(EnvdClientTest, ProcessesAreFoundByTheirTagAndKilledWithTheirTree) {
  auto client = Client();
  TaskGroup group(io_.get_executor());
  std::optional<Result<CommandResult>> first;
  std::optional<int64_t> pid;
  Command command = Bash(Family());
  command.tag = "agent";
  bool ready = false;
  command.on_started = [&](int64_t number) { pid = number; };
  command.on_output = [&](Stream, std::string_view) { ready = true; };
  group.Spawn(
      "command",
      [](EnvdClient& from, Command what, std::optional<Result<CommandResult>>& to) -> Task<void> {
        to.emplace(co_await from.Run(std::move(what)));
      }(client, std::move(command), first));
  while (!ready) io_.run_one();
  auto list = Await(client.ListProcesses());
  ASSERT_TRUE(list) << list.error().message();
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ((*list)[0].tag, "agent");
  EXPECT_EQ((*list)[0].pid, pid);
  EXPECT_EQ((*list)[0].argv[0], "bash");
  Command how = Bash("");
  how.on_started = [&](int64_t number) {
    EXPECT_EQ(number, pid);
    group.Spawn("kill", [](EnvdClient& from, int64_t whom) -> Task<void> {
      EXPECT_TRUE(co_await from.Kill(whom));
    }(client, number));
  };
  auto followed = Await(client.Follow("agent", how));
  ASSERT_TRUE(followed) << followed.error().message();
  EXPECT_EQ(followed->exit_code, 137);
  while (!first) io_.run_one();
  ASSERT_TRUE(*first);
  EXPECT_EQ((*first)->exit_code, 137);
  ExpectFamilyGone();
  EXPECT_EQ(Await(client.Follow("nobody", how)).error().code(), Code::kNotFound);
  EXPECT_EQ(Await(client.Kill(999'999)).error().code(), Code::kNotFound);
}

// ---- files ---------------------------------------------------------------------------

TEST_F(EnvdClientTest, FilesAreWrittenReadListedAndRemoved) {
  auto client = Client();
  std::string path = dir_ / "a/b c/ü?.bin", content("\0\xff zero\n", 8);
  ASSERT_TRUE(Await(client.WriteFile(path, content)));
  auto read = Await(client.ReadFile(path, 100));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, content);
  EXPECT_EQ(Await(client.ReadFile(path, 7)).error().code(), Code::kOutOfRange);
  auto info = Await(client.Stat(path));
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->name, "ü?.bin");
  EXPECT_EQ(info->size, 8);
  EXPECT_EQ(info->mode, "-rw-r--r--");
  EXPECT_FALSE(info->is_directory);
  ASSERT_TRUE(info->modified_at);
  ASSERT_TRUE(Await(client.MakeDirectory(dir_ / "a/d")));
  ASSERT_TRUE(Await(client.MakeDirectory(dir_ / "a/d")));
  auto list = Await(client.ListFiles(dir_ / "a", 2));
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->size(), 3u);
  ASSERT_TRUE(Await(client.Remove(dir_ / "a")));
  ASSERT_TRUE(Await(client.Remove(dir_ / "a")));
  EXPECT_EQ(Await(client.Stat(path)).error().code(), Code::kNotFound);
  EXPECT_EQ(Await(client.ReadFile(path, 100)).error().code(), Code::kNotFound);
  EXPECT_EQ(Await(client.ListFiles(dir_ / "a", 1)).error().code(), Code::kNotFound);
  ASSERT_TRUE(Await(client.WriteFile(dir_ / "empty", "")));
  EXPECT_EQ(Await(client.ReadFile(dir_ / "empty", 0)).value(), "");
}

struct Source {
  size_t left = 0;
  std::optional<size_t> breaks_at;
  Task<Result<std::string>> Next() {
    if (breaks_at && left <= *breaks_at) co_return Fail(Code::kAborted, "the source broke");
    size_t size = std::min<size_t>(left, 100'000);
    left -= size;
    co_return std::string(size, 'z');
  }
};

Task<Status> Count(size_t& total, std::string_view piece) {
  total += piece.size();
  co_return Status();
}

TEST_F(EnvdClientTest, LargeFilesAreStreamed) {
  auto client = Client();
  Source source{.left = 20'000'000};
  ASSERT_TRUE(Await(client.Upload(dir_ / "large", [&] { return source.Next(); })));
  size_t total = 0;
  ASSERT_TRUE(Await(client.Download(dir_ / "large",
                                    [&](std::string_view piece) { return Count(total, piece); })));
  EXPECT_EQ(total, 20'000'000u);
  EXPECT_LT(program_.ResidentBytes(), 10u << 20);
}

TEST_F(EnvdClientTest, AnUploadWhoseSourceBreaksFails) {
  Source source{.left = 1'000'000, .breaks_at = 500'000};
  Status sent = Await(Client().Upload(dir_ / "half", [&] { return source.Next(); }));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Code::kAborted);
}

// ---- text ----------------------------------------------------------------------------

TEST(Utf8DecoderTest, EveryCutGivesTheSameText) {
  const std::string text = "aé€😀\xF0\x9F\x98x\xC3(\xFF";
  Utf8Decoder whole;
  std::string expected = whole.Take(text) + whole.Finish();
  for (size_t size = 1; size <= text.size(); ++size) {
    Utf8Decoder decoder;
    std::string out;
    for (size_t at = 0; at < text.size(); at += size) out += decoder.Take(text.substr(at, size));
    EXPECT_EQ(out + decoder.Finish(), expected) << size;
  }
  EXPECT_EQ(CutUtf8("a€b", 3), "a");
  EXPECT_EQ(CutUtf8("a€b", 4), "a€");
  EXPECT_EQ(CutUtf8("ab", 5), "ab");
}

}  // namespace
}  // namespace caisson::sdk

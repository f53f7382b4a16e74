#include "git/git.h"

#include <sys/stat.h>

#include "git/git_fixture_test.h"

namespace caisson::git {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(GitTest, NamesThatAreOptionsNeverReachGit) {
  Cloned();
  EXPECT_FALSE(Await(io, git.Branch("--force", "main")));
  EXPECT_FALSE(Await(io, git.Branch("x", "--exec=id")));
  EXPECT_FALSE(Await(io, git.Clone("--upload-pack=id", "", 0)));
  EXPECT_FALSE(Await(io, git.Clone("ext::sh -c id", "", 0)));
  EXPECT_FALSE(Await(io, git.Clone(remote, "-b", 0)));
  EXPECT_FALSE(Await(io, git.Push("--mirror")));
  EXPECT_FALSE(Await(io, git.Diff("--output=/tmp/x", {})));
  EXPECT_FALSE(Await(io, git.History(1, "--output=/tmp/x")));
  EXPECT_FALSE(Await(io, git.Tag("-d", "")));
  EXPECT_THAT(runner.commands, IsEmpty());
  // Files may have such names; they are files.
  Write("--output=x", "1");
  auto staged = Await(io, git.Stage({"--output=x"}));
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_THAT(*staged, ElementsAre("--output=x"));
}

TEST_F(GitTest, StagesAllOrByPattern) {
  Cloned();
  Write("a.txt", "1");
  Write("dir with space/b.txt", "2");
  Write("dir with space/c.md", "3");
  auto some = Await(io, git.Stage({"*.txt"}));
  ASSERT_TRUE(some) << some.error().message();
  EXPECT_THAT(*some, ElementsAre("a.txt", "dir with space/b.txt"));
  std::filesystem::remove(path + "/README.md");
  auto all = Await(io, git.Stage({}));
  EXPECT_THAT(*all,
              ElementsAre("README.md", "a.txt", "dir with space/b.txt", "dir with space/c.md"));
  auto none = Await(io, git.Stage({"nothing*"}));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::kNotFound);
}

TEST_F(GitTest, CommitsWithAuthorAndTrailers) {
  Cloned();
  Write("a.txt", "1");
  ASSERT_TRUE(Await(io, git.Stage({})));
  auto made = Await(io, git.Commit("feat: a\n\n# a line that looks like a comment", "Ada",
                                   "ada@example.com", {"Task: 7", "Step: x1"}));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_TRUE(made->committed);
  EXPECT_EQ(made->sha, Head());
  EXPECT_THAT(made->files, ElementsAre("a.txt"));
  EXPECT_EQ(Must({"git", "log", "-1", "--format=%an <%ae> %cn%n%B"}, path),
            "Ada <ada@example.com> Caisson Bot\nfeat: a\n\n# a line that looks like a comment\n\n"
            "Task: 7\nStep: x1\n\n");
  EXPECT_EQ(Must({"git", "log", "-1", "--format=%(trailers:key=Task)"}, path), "Task: 7\n\n");
}

TEST_F(GitTest, ARepeatedCommitIsTheSame) {
  Cloned();
  Write("a.txt", "1");
  ASSERT_TRUE(Await(io, git.Stage({})));
  auto first = Await(io, git.Commit("feat: a", "", "", {"Step: x1"}));
  auto second = Await(io, git.Commit("feat: a", "", "", {"Step: x1"}));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->sha, second->sha);
  EXPECT_TRUE(second->committed);
  EXPECT_THAT(second->files, ElementsAre("a.txt"));
  auto other = Await(io, git.Commit("feat: a", "", "", {"Step: x2"}));
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->committed);
}

TEST_F(GitTest, NothingToCommitIsNoError) {
  Cloned();
  auto made = Await(io, git.Commit("feat: a", "", "", {}));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_FALSE(made->committed);
  EXPECT_EQ(made->sha, Head());
}

TEST_F(GitTest, ABadMessageTouchesNothing) {
  for (auto refused : {Await(io, git.Commit("did things", "", "", {})),
                       Await(io, git.Commit("feat: x", "", "", {"no trailer"})),
                       Await(io, git.Commit("feat: x", "", "", {"A: b\nC: d"})),
                       Await(io, git.Commit("feat: x", "A <b>", "a@example.com", {}))}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  }
  EXPECT_THAT(runner.commands, IsEmpty());
}

TEST_F(GitTest, ACommitThatIsStoppedLeavesTheOldHead) {
  Cloned();
  std::string before = Head();
  Write("a.txt", "1");
  ASSERT_TRUE(Await(io, git.Stage({})));
  // A commit that hangs in the middle, with the index locked, and is killed at its deadline.
  runner.instead =
      [this](const sdk::Command& command) -> std::optional<Result<sdk::CommandResult>> {
    if (!Names(command, "commit")) return std::nullopt;
    std::ofstream(path + "/.git/index.lock") << "half";
    return sdk::CommandResult{.exit_code = 137, .timed_out = true};
  };
  auto stopped = Await(io, git.Commit("feat: a", "", "", {"Step: 1"}));
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(Head(), before);
  runner.instead = nullptr;
  auto again = Await(io, git.Commit("feat: a", "", "", {"Step: 1"}));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_TRUE(again->committed);
}

TEST_F(GitTest, ALockOfAnotherProcessIsWaitedFor) {
  Cloned();
  Write("a.txt", "1");
  std::string lock = path + "/.git/index.lock";
  std::ofstream(lock) << "";
  int tries = 0;
  runner.after = [&](const sdk::Command& command) {
    if (Names(command, "add") && ++tries == 2) std::filesystem::remove(lock);
  };
  auto staged = Await(io, git.Stage({}));
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_EQ(tries, 3);
  std::ofstream(lock) << "";
  runner.after = nullptr;
  auto held = Await(io, git.Stage({}));
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code(), Code::kUnavailable);
  EXPECT_EQ(operations.back().failure, Failure::kLocked);
}

TEST_F(GitTest, StatusTellsAllKinds) {
  Cloned();
  Write("staged file.txt", "1");
  ASSERT_TRUE(Await(io, git.Stage({})));
  Write("README.md", "changed\n");
  Write("new/deep.txt", "1");
  auto status = Await(io, git.Status());
  ASSERT_TRUE(status) << status.error().message();
  EXPECT_EQ(status->branch, "main");
  EXPECT_EQ(status->head_sha, Head());
  EXPECT_THAT(status->staged, ElementsAre("staged file.txt"));
  EXPECT_THAT(status->modified, ElementsAre("README.md"));
  EXPECT_THAT(status->untracked, ElementsAre("new/deep.txt"));
  EXPECT_FALSE(status->clean());
  ASSERT_TRUE(Await(io, git.Stage({})));
  ASSERT_TRUE(Await(io, git.Commit("feat: x", "", "", {})));
  CommitTo(remote, "main", "theirs.txt", "x\n");
  Must({"git", "fetch", "-q"}, path);
  status = Await(io, git.Status());
  EXPECT_TRUE(status->clean());
  EXPECT_EQ(status->ahead, 1);
  EXPECT_EQ(status->behind, 1);
}

TEST_F(GitTest, StatusOfNoRepositoryIsNotFound) {
  auto status = Await(io, git.Status());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kNotFound);
  // Also below another repository.
  Must({"git", "init", "-q", temp.path()});
  std::filesystem::create_directories(path);
  status = Await(io, git.Status());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kNotFound);
}

TEST_F(GitTest, DiffsWithNumbers) {
  Cloned();
  Write("README.md", "hello\nworld\n");
  Write("tab\there.bin", std::string("\0\1", 2));
  Must({"git", "mv", "README.md", "READ ME"}, path);
  ASSERT_TRUE(Await(io, git.Stage({})));
  auto diff = Await(io, git.Diff("", {}));
  ASSERT_TRUE(diff) << diff.error().message();
  EXPECT_THAT(diff->text, HasSubstr("+world"));
  ASSERT_EQ(diff->files.size(), 2u);
  EXPECT_EQ(diff->files[0].path, "READ ME");
  EXPECT_EQ(diff->files[0].old_path, "README.md");
  EXPECT_EQ(diff->files[0].added, 1);
  EXPECT_EQ(diff->files[1].path, "tab\there.bin");
  EXPECT_TRUE(diff->files[1].binary);
  auto one = Await(io, git.Diff("main", {"tab\there.bin"}));
  EXPECT_EQ(one->files.size(), 1u);
  auto none = Await(io, git.Diff("none", {}));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::kNotFound);
}

TEST_F(GitTest, LongDiffsAreCutBetweenLines) {
  Cloned();
  config.git_diff_bytes = 2000;
  std::string content;
  for (int i = 0; i < 1000; ++i) content += fmt::format("line {}\n", i);
  Write("README.md", content);
  auto diff = Await(io, git.Diff("", {}));
  ASSERT_TRUE(diff) << diff.error().message();
  EXPECT_TRUE(diff->truncated);
  EXPECT_LE(diff->text.size(), 2000u);
  EXPECT_EQ(diff->text.back(), '\n');
  EXPECT_EQ(diff->files[0].added, 1000);
}

TEST_F(GitTest, HistoryIsNewestFirst) {
  Cloned();
  for (int i = 0; i < 3; ++i) CommitHere(fmt::format("{}.txt", i), "x");
  auto history = Await(io, git.History(2));
  ASSERT_TRUE(history) << history.error().message();
  ASSERT_EQ(history->size(), 2u);
  EXPECT_EQ((*history)[0].sha, Head());
  EXPECT_EQ((*history)[0].message, "feat: 2.txt");
  EXPECT_EQ((*history)[0].author, "Caisson Bot");
  EXPECT_TRUE(ParseTime((*history)[0].date)) << (*history)[0].date;
  EXPECT_EQ(Await(io, git.History(20, "origin/main..HEAD"))->size(), 3u);
  auto none = Await(io, git.History(20, "none..HEAD"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::kNotFound);
}

TEST_F(GitTest, Tags) {
  Cloned();
  EXPECT_EQ(*Await(io, git.Tag("v1", "the first")), Head());
  EXPECT_EQ(*Await(io, git.Tag("v1", "the first")), Head());
  EXPECT_EQ(*Await(io, git.Tag("light", "")), Head());
  EXPECT_THAT(Must({"git", "tag", "-n", "-l", "v1"}, path), HasSubstr("the first"));
  CommitHere("a.txt", "1");
  auto taken = Await(io, git.Tag("v1", ""));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), Code::kAlreadyExists);
}

// Everything a checkout can hold that makes git run programs; each would leave a mark.
TEST_F(GitTest, HostileCheckoutsRunNothingOfTheirs) {
  Cloned();
  std::string mark = temp / "mark";
  std::string script = temp / "evil.sh";
  std::ofstream(script) << "#!/bin/sh\necho \"$0 $*\" >> " << mark << "\ncat\n";
  chmod(script.c_str(), 0755);
  for (const char* hook : {"pre-commit", "post-commit", "commit-msg", "prepare-commit-msg",
                           "post-checkout", "pre-push", "post-merge", "pre-rebase", "post-rewrite",
                           "reference-transaction", "post-index-change"}) {
    std::string file = path + "/.git/hooks/" + hook;
    std::filesystem::copy_file(script, file, std::filesystem::copy_options::overwrite_existing);
  }
  for (auto [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"core.fsmonitor", script},
                                                        {"core.hooksPath", path + "/.git/hooks"},
                                                        {"core.editor", script},
                                                        {"core.pager", script},
                                                        {"core.askPass", script},
                                                        {"credential.helper", "!" + script},
                                                        {"commit.gpgSign", "true"},
                                                        {"gpg.program", script},
                                                        {"diff.external", script},
                                                        {"diff.evil.textconv", script},
                                                        {"log.showSignature", "true"},
                                                        {"protocol.ext.allow", "always"},
                                                        {"sequence.editor", script}})
    Must({"git", "config", key, value}, path);
  Write(".gitattributes", "*.txt diff=evil\n");
  Write(".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh " + script + "\n");
  std::ofstream(temp / "home/.gitconfig");
  Write("a.txt", "1\n");
  ASSERT_TRUE(Await(io, git.Status()));
  ASSERT_TRUE(Await(io, git.Branch("task-1", "main")));
  ASSERT_TRUE(Await(io, git.Stage({})));
  ASSERT_TRUE(Await(io, git.Diff("", {})));
  auto made = Await(io, git.Commit("feat: a", "", "", {}));
  ASSERT_TRUE(made) << made.error().message();
  ASSERT_TRUE(Await(io, git.History(5)));
  auto pushed = Await(io, git.Push("task-1"));
  ASSERT_TRUE(pushed) << pushed.error().message();
  CommitTo(remote, "task-1", "theirs.txt", "x\n");
  ASSERT_TRUE(Await(io, git.Pull(true)));
  ASSERT_TRUE(Await(io, git.Tag("v1", "x")));
  ASSERT_TRUE(Await(io, git.Clone(remote, "main", 0)));
  EXPECT_FALSE(std::filesystem::exists(mark)) << *ReadFile(mark);
}

TEST_F(GitTest, NoSettingsFromOutside) {
  std::filesystem::create_directories(temp / "home");
  std::ofstream(temp / "home/.gitconfig")
      << "[core]\n\thooksPath = /evil\n[user]\n\tname = Evil\n[url \"http://evil.invalid/\"]\n"
         "\tinsteadOf = /\n";
  auto cloned = Await(io, git.Clone(remote, "", 0));
  EXPECT_TRUE(cloned) << cloned.error().message();
}

// ---- the lock -------------------------------------------------------------------------------

// Runs nothing; counts how many are at work.
class SlowRunner : public CommandRunner {
 public:
  Task<Result<sdk::CommandResult>> Run(sdk::Command) override {
    most = std::max(most, ++at_work);
    co_await SleepFor(std::chrono::milliseconds(pause));
    --at_work;
    co_return sdk::CommandResult{};
  }
  int at_work = 0, most = 0, pause = 5;
};

TEST(GitLock, OneOperationAtATimeInACheckout) {
  asio::io_context io;
  Config config;
  SlowRunner runner;
  Locks locks;
  Git one(runner, config, "/a", {}, locks.For("sandbox", "/a"));
  Git two(runner, config, "/a", {}, locks.For("sandbox", "/a"));
  Git other(runner, config, "/b", {}, locks.For("sandbox", "/b"));
  int done = 0;
  std::vector<int> order;
  auto start = [&](Git& git, int number) {
    asio::co_spawn(io, git.Status(), [&, number](std::exception_ptr, Result<StatusResult> status) {
      EXPECT_TRUE(status) << status.error().message();
      order.push_back(number);
      ++done;
    });
  };
  start(one, 1);
  start(two, 2);
  start(one, 3);
  io.run();
  EXPECT_EQ(done, 3);
  EXPECT_EQ(runner.most, 1);
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
  io.restart();
  start(one, 4);
  start(other, 5);
  io.run();
  EXPECT_EQ(runner.most, 2);
  EXPECT_EQ(locks.depth(), 0u);
}

TEST(GitLock, WaitsAreBounded) {
  asio::io_context io;
  Config config;
  config.git_lock_wait_ms = 1;
  SlowRunner runner;
  runner.pause = 200;
  Git git(runner, config, "/a");
  asio::co_spawn(io, git.Status(), [](std::exception_ptr, Result<StatusResult>) {});
  auto second = Await(io, git.Status());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  io.run();
  EXPECT_TRUE(Await(io, git.Status())) << "the lock is free again";
}

}  // namespace
}  // namespace caisson::git

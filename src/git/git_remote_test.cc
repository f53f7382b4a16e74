// Operations that talk to the remote.
#include "git/git_fixture_test.h"

namespace caisson::git {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(GitTest, ClonesAndTellsHowFarItIs) {
  auto cloned = Await(io, git.Clone(remote, "", 0));
  ASSERT_TRUE(cloned) << cloned.error().message();
  EXPECT_TRUE(cloned->cloned);
  EXPECT_EQ(cloned->path, path);
  EXPECT_EQ(cloned->branch, "main");
  EXPECT_EQ(cloned->head_sha, Head());
  EXPECT_FALSE(cloned->uses_lfs);
  ASSERT_EQ(operations.size(), 1u);
  EXPECT_EQ(operations[0].name, "clone");
  EXPECT_EQ(operations[0].exit_code, 0);
  EXPECT_THAT(operations[0].argv, ::testing::Contains(remote));
  EXPECT_FALSE(std::filesystem::exists(path + ".cloning"));
}

TEST_F(GitTest, AnExistingCheckoutIsBroughtUpToDate) {
  Cloned();
  CommitTo(remote, "main", "new.txt", "x\n");
  CommitTo(remote, "other", "other.txt", "x\n");
  auto again = Await(io, git.Clone(remote, "", 0));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_FALSE(again->cloned);
  EXPECT_EQ(again->head_sha, Rev("refs/heads/main", remote));
  EXPECT_TRUE(std::filesystem::exists(path + "/new.txt"));
  auto other = Await(io, git.Clone(remote, "other", 0));
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_EQ(other->branch, "other");
  EXPECT_TRUE(std::filesystem::exists(path + "/other.txt"));
}

TEST_F(GitTest, CommitsOfOnesOwnSurviveAnotherClone) {
  Cloned();
  std::string sha = CommitHere("mine.txt", "x");
  auto again = Await(io, git.Clone(remote, "", 0));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->head_sha, sha);
}

TEST_F(GitTest, ARefreshedCheckoutIsWhatACloneWouldBe) {
  auto first = Await(io, git.Refresh(remote, "", 0));
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_TRUE(first->cloned);
  // On another branch, with commits and changes of its own.
  CommitTo(remote, "other", "other.txt", "x\n");
  ASSERT_TRUE(Await(io, git.Clone(remote, "other", 0)));
  CommitHere("mine.txt", "x");
  Write("other.txt", "changed\n");
  CommitTo(remote, "main", "new.txt", "x\n");
  auto again = Await(io, git.Refresh(remote, "", 0));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_FALSE(again->cloned);
  EXPECT_EQ(again->branch, "main");
  EXPECT_EQ(again->head_sha, Rev("refs/heads/main", remote));
  EXPECT_EQ(Must({"git", "status", "--porcelain"}, path), "");
  EXPECT_EQ(Must({"git", "branch", "--format=%(refname:short)"}, path), "main\n");
  EXPECT_THAT(operations.back().argv, ::testing::Contains("fetch"));
  // The remote's default is another one now, and the old one is gone.
  Must({"git", "symbolic-ref", "HEAD", "refs/heads/other"}, remote);
  Must({"git", "branch", "-D", "main"}, remote);
  auto moved = Await(io, git.Refresh(remote, "", 0));
  ASSERT_TRUE(moved) << moved.error().message();
  EXPECT_FALSE(moved->cloned);
  EXPECT_EQ(moved->branch, "other");
  EXPECT_EQ(moved->head_sha, Rev("refs/heads/other", remote));
}

TEST_F(GitTest, ARefreshFollowsARemoteThatWasRewritten) {
  ASSERT_TRUE(Await(io, git.Refresh(remote, "main", 0)));
  CommitTo(remote, "fresh", "fresh.txt", "x\n");
  CommitTo(remote, "main", "gone.txt", "x\n");
  ASSERT_TRUE(Await(io, git.Refresh(remote, "main", 0)));
  Must({"git", "update-ref", "refs/heads/main", "refs/heads/fresh"}, remote);
  auto again = Await(io, git.Refresh(remote, "main", 0));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_FALSE(again->cloned);
  EXPECT_EQ(again->head_sha, Rev("refs/heads/fresh", remote));
  EXPECT_FALSE(std::filesystem::exists(path + "/gone.txt"));
}

TEST_F(GitTest, ARefreshReplacesWhatCannotBeUsed) {
  Cloned();
  std::filesystem::remove_all(path + "/.git/objects");
  auto broken = Await(io, git.Refresh(remote, "", 0));
  ASSERT_TRUE(broken) << broken.error().message();
  EXPECT_TRUE(broken->cloned);
  EXPECT_EQ(operations.back().failure, Failure::kNone);
  std::string second = temp / "second.git";
  MakeRemote(second);
  auto other = Await(io, git.Refresh(second, "", 0));
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_TRUE(other->cloned);
  EXPECT_EQ(other->head_sha, Rev("refs/heads/main", second));
  // A remote that does not answer is no reason to give up what is there.
  runner.instead = [](const sdk::Command& command) -> std::optional<Result<sdk::CommandResult>> {
    if (!Names(command, "fetch")) return std::nullopt;
    return Result<sdk::CommandResult>(tl::unexpected(Error(Code::kUnavailable, "no route")));
  };
  EXPECT_FALSE(Await(io, git.Refresh(second, "", 0)));
  EXPECT_TRUE(std::filesystem::exists(path + "/.git"));
}

TEST_F(GitTest, WhatWasInterruptedIsClonedAgain) {
  // Killed in the middle: what is left is beside the checkout, not in its place.
  std::filesystem::create_directories(path + ".cloning/.git/objects");
  auto cloned = Await(io, git.Clone(remote, "", 0));
  ASSERT_TRUE(cloned) << cloned.error().message();
  EXPECT_EQ(cloned->head_sha, Head());
}

TEST_F(GitTest, ShallowClonesCanBranchOffAnyBranch) {
  CommitTo(remote, "main", "second.txt", "x\n");
  EXPECT_FALSE(Await(io, git.Clone("file://" + remote, "", 1))) << "no address for a client";
  Must({"git", "clone", "-q", "--depth=1", "file://" + remote, path});
  CommitTo(remote, "develop", "d.txt", "x\n");
  auto branch = Await(io, git.Branch("task-1", "develop"));
  ASSERT_TRUE(branch) << branch.error().message();
  EXPECT_EQ(branch->base_sha, Rev("refs/heads/develop", remote));
}

TEST_F(GitTest, ShallowClonesFindABranchThatExists) {
  CommitTo(remote, "task-1", "first.txt", "of the round before\n");
  Must({"git", "clone", "-q", "--depth=1", "--branch=main", "file://" + remote, path});
  auto branch = Await(io, git.Branch("task-1", "main"));
  ASSERT_TRUE(branch) << branch.error().message();
  EXPECT_FALSE(branch->created);
  EXPECT_EQ(Head(), Rev("refs/heads/task-1", remote));
}

TEST_F(GitTest, TheDepthIsPassedOn) {
  auto cloned = Await(io, git.Clone(remote, "main", 3));
  ASSERT_TRUE(cloned) << cloned.error().message();
  EXPECT_THAT(operations[0].argv, ::testing::IsSupersetOf({"--depth=3", "--single-branch"}));
}

TEST_F(GitTest, ClonesThatCannotWorkSayWhy) {
  auto missing = Await(io, git.Clone(temp / "none.git", "", 0));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_EQ(operations.back().failure, Failure::kNotFound);
  auto branch = Await(io, git.Clone(remote, "none", 0));
  ASSERT_FALSE(branch);
  EXPECT_EQ(branch.error().code(), Code::kNotFound);
  auto network = Await(io, git.Clone("http://127.0.0.1:1/o/r.git", "", 0));
  ASSERT_FALSE(network);
  EXPECT_EQ(network.error().code(), Code::kUnavailable);
  EXPECT_EQ(operations.back().attempts, 3);
  Write("something", "else");
  auto occupied = Await(io, git.Clone(remote, "", 0));
  ASSERT_FALSE(occupied);
  EXPECT_EQ(occupied.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(std::filesystem::exists(path + ".cloning"));
}

TEST_F(GitTest, AnotherRepositoryInTheSamePlaceIsNotTouched) {
  Cloned();
  MakeRemote(temp / "second.git");
  auto other = Await(io, git.Clone(temp / "second.git", "", 0));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Code::kFailedPrecondition);
}

TEST_F(GitTest, AnEmptyRepositoryIsCloned) {
  Must({"git", "init", "-q", "--bare", "-b", "main", temp / "empty.git"});
  auto cloned = Await(io, git.Clone(temp / "empty.git", "", 0));
  ASSERT_TRUE(cloned) << cloned.error().message();
  EXPECT_EQ(cloned->head_sha, "");
  EXPECT_EQ(cloned->branch, "main");
  EXPECT_THAT(*Await(io, git.History(20)), IsEmpty());
  std::string sha = CommitHere("first.txt", "x\n");
  EXPECT_EQ(*Await(io, git.Push("main")), sha);
}

TEST_F(GitTest, LfsIsNamed) {
  CommitTo(remote, "main", "sub/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  CommitTo(remote, "main", "sub/a.bin", "version https://git-lfs.github.com/spec/v1\n");
  auto cloned = Await(io, git.Clone(remote, "", 0));
  ASSERT_TRUE(cloned) << cloned.error().message();
  EXPECT_TRUE(cloned->uses_lfs);
  EXPECT_THAT(progress.back().text, HasSubstr("Git LFS, which is not supported"));
}

TEST_F(GitTest, BranchesFromAnUpToDateBase) {
  Cloned();
  CommitTo(remote, "main", "later.txt", "x\n");
  auto made = Await(io, git.Branch("task-7", "main"));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_TRUE(made->created);
  EXPECT_EQ(made->base_sha, Rev("refs/heads/main", remote));
  EXPECT_EQ(Head(), made->base_sha);
  auto again = Await(io, git.Branch("task-7", "main"));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_FALSE(again->created);
  auto gone = Await(io, git.Branch("task-8", "none"));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), Code::kNotFound);
  auto current = Await(io, git.Branch("task-9", ""));
  ASSERT_TRUE(current) << current.error().message();
}

TEST_F(GitTest, ABranchOfTheRemoteIsTakenUp) {
  Cloned();
  CommitTo(remote, "task-7", "there.txt", "x\n");
  auto taken = Await(io, git.Branch("task-7", "main"));
  ASSERT_TRUE(taken) << taken.error().message();
  EXPECT_FALSE(taken->created);
  EXPECT_EQ(Head(), Rev("refs/heads/task-7", remote));
}

TEST_F(GitTest, PushesAndSetsTheUpstream) {
  Cloned();
  ASSERT_TRUE(Await(io, git.Branch("task-7", "main")));
  std::string sha = CommitHere("a.txt", "1");
  auto pushed = Await(io, git.Push(""));
  ASSERT_TRUE(pushed) << pushed.error().message();
  EXPECT_EQ(*pushed, sha);
  EXPECT_EQ(Rev("refs/heads/task-7", remote), sha);
  EXPECT_EQ(Must({"git", "rev-parse", "--abbrev-ref", "task-7@{u}"}, path), "origin/task-7\n");
  EXPECT_EQ(*Await(io, git.Push("task-7")), sha);
  auto none = Await(io, git.Push("none"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::kNotFound);
}

TEST_F(GitTest, APushIsRepeatedWhenTheNetworkFails) {
  Cloned();
  std::string sha = CommitHere("a.txt", "1");
  int drops = 0;
  runner.instead = [&](const sdk::Command& command) -> std::optional<Result<sdk::CommandResult>> {
    if (!Names(command, "push") || ++drops > 2) return std::nullopt;
    return sdk::CommandResult{.exit_code = 128,
                              .stderr_text =
                                  "fatal: unable to access 'x': Recv failure: Connection "
                                  "reset by peer"};
  };
  auto pushed = Await(io, git.Push("main"));
  ASSERT_TRUE(pushed) << pushed.error().message();
  EXPECT_EQ(Rev("refs/heads/main", remote), sha);
  EXPECT_EQ(operations.back().attempts, 3);
  drops = -10;
  CommitHere("b.txt", "1");
  auto lost = Await(io, git.Push("main"));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), Code::kUnavailable);
  EXPECT_EQ(operations.back().failure, Failure::kNetwork);
}

TEST_F(GitTest, ALostAnswerIsNotPushedTwice) {
  Cloned();
  std::string sha = CommitHere("a.txt", "1");
  int pushes = 0;
  // The push arrives, the answer does not.
  runner.instead = [&](const sdk::Command& command) -> std::optional<Result<sdk::CommandResult>> {
    if (!Names(command, "push")) return std::nullopt;
    ++pushes;
    Execute(command, temp.path());
    return Fail(Code::kUnavailable, "the connection was lost");
  };
  auto pushed = Await(io, git.Push("main"));
  ASSERT_TRUE(pushed) << pushed.error().message();
  EXPECT_EQ(*pushed, sha);
  EXPECT_EQ(pushes, 1);
  EXPECT_EQ(operations.back().failure, Failure::kNone);
}

TEST_F(GitTest, ARejectedPushIsNotRepeated) {
  Cloned();
  CommitTo(remote, "main", "theirs.txt", "x\n");
  CommitHere("ours.txt", "1");
  auto pushed = Await(io, git.Push("main"));
  ASSERT_FALSE(pushed);
  EXPECT_EQ(pushed.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(pushed.error().message(), HasSubstr("rejected"));
  EXPECT_EQ(operations.back().failure, Failure::kRejected);
  EXPECT_EQ(operations.back().attempts, 1);
}

TEST_F(GitTest, PullsByMergeAndByRebase) {
  Cloned();
  for (bool rebase : {false, true}) {
    CommitHere(fmt::format("ours-{}.txt", rebase), "x");
    CommitTo(remote, "main", fmt::format("theirs-{}.txt", rebase), "x\n");
    auto pulled = Await(io, git.Pull(rebase));
    ASSERT_TRUE(pulled) << pulled.error().message();
    EXPECT_THAT(pulled->conflicts, IsEmpty());
    EXPECT_EQ(pulled->head_sha, Head());
    EXPECT_TRUE(std::filesystem::exists(path + fmt::format("/theirs-{}.txt", rebase)));
    ASSERT_TRUE(Await(io, git.Push("main")));
  }
}

TEST_F(GitTest, ConflictsAreListedAndUndone) {
  Cloned();
  CommitTo(remote, "main", "both ways.txt", "theirs\n");
  std::string before = CommitHere("both ways.txt", "ours\n");
  for (bool rebase : {false, true}) {
    auto pulled = Await(io, git.Pull(rebase));
    ASSERT_TRUE(pulled) << pulled.error().message();
    EXPECT_THAT(pulled->conflicts, ElementsAre("both ways.txt"));
    EXPECT_EQ(pulled->head_sha, before);
    EXPECT_EQ(operations.back().failure, Failure::kConflict);
    auto status = Await(io, git.Status());
    EXPECT_TRUE(status->clean());
    EXPECT_EQ(status->branch, "main");
  }
}

TEST_F(GitTest, PullsNeedACleanTreeAndARemoteBranch) {
  Cloned();
  Write("README.md", "changed");
  auto dirty = Await(io, git.Pull(true));
  ASSERT_FALSE(dirty);
  EXPECT_EQ(dirty.error().code(), Code::kFailedPrecondition);
  Must({"git", "checkout", "-q", "."}, path);
  ASSERT_TRUE(Await(io, git.Branch("task-1", "")));
  auto local = Await(io, git.Pull(true));
  ASSERT_FALSE(local);
  EXPECT_EQ(local.error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace caisson::git

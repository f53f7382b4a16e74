#include "git/git_fixture_test.h"

namespace caisson::git {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ChangesTest : public GitTest {
 protected:
  ChangesResult Changes(const std::string& base, std::vector<std::string> leave_out = {},
                        int64_t max_bytes = 1 << 20) {
    auto found = Await(io, git.Changes(base, std::move(leave_out), max_bytes));
    EXPECT_TRUE(found) << found.error().message();
    return found ? *found : ChangesResult();
  }
  std::vector<std::string> Kinds(const ChangesResult& changes) {
    std::vector<std::string> kinds;
    for (const DiffFile& file : changes.files) kinds.push_back(file.path + " " + file.change);
    return kinds;
  }
  void Started() {
    auto made = Await(io, git.Init(Time(std::chrono::seconds(1'763'224'800))));
    ASSERT_TRUE(made) << made.error().message();
    start = *made;
  }

  CloneResult start;
};

TEST_F(ChangesTest, ARepositoryOfItsOwnIsTheSameWhereverItIsMade) {
  Started();
  EXPECT_EQ(start.branch, "main");
  EXPECT_EQ(start.head_sha.size(), 40u);
  EXPECT_TRUE(start.cloned);
  auto again = Await(io, git.Init(Time(std::chrono::seconds(5))));
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->cloned);
  EXPECT_EQ(again->head_sha, start.head_sha);
  std::filesystem::remove_all(path);
  std::string before = start.head_sha;
  Started();
  EXPECT_EQ(start.head_sha, before);
}

TEST_F(ChangesTest, ABranchNeedsNoRemote) {
  Started();
  auto made = Await(io, git.Branch("task-1", "main"));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_TRUE(made->created);
  EXPECT_EQ(made->base_sha, start.head_sha);
  auto again = Await(io, git.Branch("task-1", "main"));
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->created);
}

TEST_F(ChangesTest, TheTreeWithNewFilesAgainstTheBase) {
  Started();
  CommitHere("kept.txt", "one\ntwo\n");
  CommitHere("gone.txt", "a longer text that nobody else has\n");
  CommitHere("old name.txt", "1\n2\n3\n4\n5\n6\n");
  std::string base = Head();
  CommitHere("kept.txt", "one\nthree\n");
  Write("new/file.txt", "new\n");
  Write("picture", std::string("\0\1\2", 3));
  Write(".gitignore", "*.log\n");
  Write("noise.log", "noise\n");
  std::filesystem::remove(path + "/gone.txt");
  std::filesystem::rename(path + "/old name.txt", path + "/name.txt");
  std::string staged = Must({"git", "status", "--porcelain"}, path);

  ChangesResult changes = Changes(base);
  EXPECT_EQ(changes.base_sha, base);
  EXPECT_EQ(changes.head_sha, Head());
  EXPECT_EQ(changes.branch, "main");
  EXPECT_FALSE(changes.truncated);
  EXPECT_THAT(Kinds(changes),
              ElementsAre(".gitignore added", "gone.txt deleted", "kept.txt modified",
                          "name.txt renamed", "new/file.txt added", "picture added"));
  EXPECT_EQ(changes.files[2].added, 1);
  EXPECT_EQ(changes.files[2].removed, 1);
  EXPECT_EQ(changes.files[3].old_path, "old name.txt");
  EXPECT_TRUE(changes.files[5].binary);
  EXPECT_THAT(changes.patch, HasSubstr("+three"));
  EXPECT_THAT(changes.patch, HasSubstr("+new"));
  EXPECT_THAT(changes.patch, Not(HasSubstr("noise")));

  // Against the last commit, what was committed is no change.
  EXPECT_THAT(Changes("").patch, Not(HasSubstr("+three")));
  // Nobody can tell that we looked.
  EXPECT_EQ(Must({"git", "status", "--porcelain"}, path), staged);
  for (const auto& entry : std::filesystem::directory_iterator(path + "/.git"))
    EXPECT_FALSE(entry.path().filename().string().starts_with("caisson")) << entry.path();
}

TEST_F(ChangesTest, StagedFilesAreChangesToo) {
  Started();
  Write("a.txt", "a\n");
  ASSERT_TRUE(Await(io, git.Stage({})));
  Write("a.txt", "a\nb\n");
  ChangesResult changes = Changes(start.head_sha);
  EXPECT_THAT(Kinds(changes), ElementsAre("a.txt added"));
  EXPECT_EQ(changes.files[0].added, 2);
}

TEST_F(ChangesTest, WhatOthersDidMeanwhileIsNoChange) {
  Started();
  ASSERT_TRUE(Await(io, git.Branch("task", "main")));
  CommitHere("mine.txt", "mine\n");
  ASSERT_TRUE(Await(io, git.Branch("main", "")));
  std::string later = CommitHere("theirs.txt", "theirs\n");
  ASSERT_TRUE(Await(io, git.Branch("task", "")));
  ChangesResult changes = Changes(later);
  EXPECT_EQ(changes.base_sha, start.head_sha);
  EXPECT_THAT(Kinds(changes), ElementsAre("mine.txt added"));
}

TEST_F(ChangesTest, LongOnesAreCutAndLitterIsLeftOut) {
  Started();
  Write("long.txt", std::string(5'000, 'x') + "\n");
  Write("sub/.litter", "x\n");
  ChangesResult changes = Changes(start.head_sha, {":(exclude,glob)**/.litter"}, 1'000);
  EXPECT_TRUE(changes.truncated);
  EXPECT_LE(changes.patch.size(), 1'000u);
  EXPECT_THAT(Kinds(changes), ElementsAre("long.txt added"));
}

TEST_F(ChangesTest, WhatTheAgentHoldsIsNotInTheWay) {
  Started();
  Write("a.txt", "a\n");
  Write(".git/index.lock", "");
  EXPECT_THAT(Kinds(Changes("")), ElementsAre("a.txt added"));
}

TEST_F(ChangesTest, OfNothingThereAreNone) {
  auto missing = Await(io, git.Changes("", {}, 1'000));
  ASSERT_FALSE(missing);
  Started();
  auto unknown = Await(io, git.Changes("0123456789012345678901234567890123456789", {}, 1'000));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
  EXPECT_FALSE(Await(io, git.Changes("--output=/tmp/x", {}, 1'000)));
  EXPECT_TRUE(Changes("").files.empty());
}

}  // namespace
}  // namespace caisson::git

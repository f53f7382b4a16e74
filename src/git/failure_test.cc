// What real git prints when things go wrong, and what we make of it.
#include "git/failure.h"

#include <gtest/gtest.h>

#include <fstream>

#include "git/recovery.h"
#include "git/test_support.h"

namespace caisson::git {
namespace {

using caisson::testing::TempDir;

struct Sample {
  Failure failure;
  const char* text;
};

// Of git and of the programs it uses, as they were seen in the field.
constexpr Sample kSamples[] = {
    {Failure::kAuth,
     "remote: Invalid username or password.\nfatal: Authentication failed for 'https://h/o/r/'"},
    {Failure::kAuth, "fatal: could not read Username for 'https://h': terminal prompts disabled"},
    {Failure::kAuth,
     "remote: Permission to o/r.git denied to bot.\nfatal: unable to access 'https://h/o/r/': The "
     "requested URL returned error: 403"},
    {Failure::kAuth,
     "git@h: Permission denied (publickey).\nfatal: Could not read from remote repository."},
    {Failure::kAuth,
     "error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403\nsend-pack: "
     "unexpected disconnect while reading sideband packet"},
    {Failure::kNetwork, "fatal: unable to access 'https://h/o/r/': Could not resolve host: h"},
    {Failure::kNetwork,
     "fatal: unable to access 'https://h/': Failed to connect to h port 443 after 3 ms: Couldn't "
     "connect to server"},
    {Failure::kNetwork,
     "error: RPC failed; curl 18 transfer closed with outstanding read data remaining\nfatal: "
     "early EOF\nfatal: fetch-pack: invalid index-pack output"},
    {Failure::kNetwork,
     "error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502\nfatal: the remote "
     "end hung up unexpectedly"},
    {Failure::kNetwork,
     "fatal: unable to access 'https://h/': The requested URL returned error: 503"},
    {Failure::kNetwork,
     "fatal: unable to access 'https://h/': GnuTLS recv error (-110): The TLS connection was "
     "non-properly terminated."},
    {Failure::kNetwork,
     "ssh: connect to host h port 22: Connection timed out\nfatal: Could not read from remote "
     "repository."},
    {Failure::kNotFound,
     "remote: Repository not found.\nfatal: repository 'https://h/o/r/' not found"},
    {Failure::kNotFound, "fatal: Remote branch x not found in upstream origin"},
    {Failure::kRejected,
     " ! [remote rejected] main -> main (protected branch hook declined)\nerror: failed to push "
     "some refs to 'https://h/o/r'"},
    {Failure::kRejected,
     "remote: error: GH006: Protected branch update failed for refs/heads/main.\nerror: failed to "
     "push some refs"},
    {Failure::kConflict,
     "CONFLICT (content): Merge conflict in a\nAutomatic merge failed; fix conflicts and then "
     "commit the result."},
    {Failure::kLocked,
     "fatal: Unable to create '/w/.git/index.lock': File exists.\n\nAnother git process seems to "
     "be running"},
    {Failure::kOther, "fatal: something nobody has seen before"},
};

TEST(Failure, KnownTexts) {
  for (const Sample& sample : kSamples)
    EXPECT_EQ(FailureName(ClassifyStderr(sample.text)), FailureName(sample.failure)) << sample.text;
}

// Two clones of one repository, so that everything can go wrong for real.
class RealGit : public ::testing::Test {
 protected:
  void SetUp() override {
    MakeRemote(remote);
    Must({"git", "clone", "-q", remote, one});
    Must({"git", "clone", "-q", remote, two});
  }

  // What git prints when it fails, and what that is.
  Failure Fails(std::vector<std::string> args, const std::string& dir) {
    args.insert(args.begin(), "git");
    sdk::Command command{.argv = args, .cwd = dir, .timeout = std::chrono::milliseconds(60'000)};
    command.env = {{"LC_ALL", "C"},
                   {"GIT_TERMINAL_PROMPT", "0"},
                   {"GIT_AUTHOR_NAME", "A"},
                   {"GIT_AUTHOR_EMAIL", "a@example.com"},
                   {"GIT_COMMITTER_NAME", "A"},
                   {"GIT_COMMITTER_EMAIL", "a@example.com"}};
    auto result = Execute(command, temp.path());
    EXPECT_NE(result.exit_code, 0) << args[1] << " went well";
    said = result.stderr_text + result.stdout_text;
    return ClassifyStderr(said);
  }

  void CommitIn(const std::string& dir, const std::string& content) {
    std::ofstream(dir + "/README.md") << content;
    Must({"git", "commit", "-q", "-a", "-m", "fix: x"}, dir);
  }

  TempDir temp;
  std::string remote = temp / "remote.git";
  std::string one = temp / "one";
  std::string two = temp / "two";
  std::string said;
};

TEST_F(RealGit, Network) {
  EXPECT_EQ(Fails({"ls-remote", "http://127.0.0.1:1/o/r.git"}, "/"), Failure::kNetwork) << said;
  EXPECT_EQ(Fails({"clone", "http://nowhere.invalid/o/r.git", temp / "x"}, "/"), Failure::kNetwork)
      << said;
}

TEST_F(RealGit, NotFound) {
  EXPECT_EQ(Fails({"clone", temp / "none.git", temp / "x"}, "/"), Failure::kNotFound) << said;
  EXPECT_EQ(Fails({"clone", "--branch=none", remote, temp / "x"}, "/"), Failure::kNotFound) << said;
  EXPECT_EQ(Fails({"fetch", "origin", "none"}, one), Failure::kNotFound) << said;
  EXPECT_EQ(Fails({"switch", "none"}, one), Failure::kNotFound) << said;
  EXPECT_EQ(Fails({"add", "none"}, one), Failure::kNotFound) << said;
  EXPECT_EQ(Fails({"log", "none..HEAD"}, one), Failure::kNotFound) << said;
  EXPECT_EQ(Fails({"status"}, "/"), Failure::kNotFound) << said;
  EXPECT_EQ(Fails({"-C", temp / "none", "status"}, "/"), Failure::kNotFound) << said;
}

TEST_F(RealGit, Rejected) {
  CommitIn(one, "1\n");
  Must({"git", "push", "-q"}, one);
  CommitIn(two, "2\n");
  EXPECT_EQ(Fails({"push"}, two), Failure::kRejected) << said;
  std::string hook = remote + "/hooks/pre-receive";
  std::ofstream(hook) << "#!/bin/sh\nexit 1\n";
  std::filesystem::permissions(hook, std::filesystem::perms::owner_all);
  EXPECT_EQ(Fails({"push", "origin", "HEAD:refs/heads/other"}, two), Failure::kRejected) << said;
}

TEST_F(RealGit, Conflict) {
  CommitIn(one, "1\n");
  Must({"git", "push", "-q"}, one);
  std::ofstream(two + "/README.md") << "not committed\n";
  EXPECT_EQ(Fails({"pull", "--ff-only"}, two), Failure::kConflict) << said;
  CommitIn(two, "2\n");
  EXPECT_EQ(Fails({"pull"}, two), Failure::kConflict) << said;
  EXPECT_EQ(Fails({"pull", "--ff-only"}, two), Failure::kConflict) << said;
  EXPECT_EQ(Fails({"pull", "--rebase"}, two), Failure::kConflict) << said;
  Must({"git", "rebase", "--abort"}, two);
  EXPECT_EQ(Fails({"pull", "--no-rebase"}, two), Failure::kConflict) << said;
  EXPECT_EQ(Fails({"commit", "-m", "x"}, two), Failure::kConflict) << said;
}

TEST_F(RealGit, Locked) {
  std::ofstream(one + "/.git/index.lock") << "";
  EXPECT_EQ(Fails({"add", "-A", "."}, one), Failure::kLocked) << said;
}

TEST(Failure, GitsOwnWordsAreThoseThatMatter) {
  EXPECT_EQ(
      GitsOwnWords("Cloning into 'x'...\nReceiving objects:  10% (1/10)\rReceiving objects: 100% "
                   "(10/10), done.\nhint: try\nfatal: no\n"),
      "fatal: no");
  EXPECT_LE(GitsOwnWords(std::string(5000, 'x') + "\nshort").size(), 1000u);
}

TEST(Failure, EveryFailureThatHasANameSaysWhatHelps) {
  for (Failure failure : {Failure::kAuth, Failure::kNetwork, Failure::kConflict, Failure::kNotFound,
                          Failure::kRejected, Failure::kLocked})
    EXPECT_TRUE(RecoveryOf(failure).ends_with(".")) << FailureName(failure);
  EXPECT_EQ(RecoveryOf(Failure::kNone), "");
}

}  // namespace
}  // namespace caisson::git

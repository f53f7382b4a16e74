// For tests of Git: a bare repository, and a checkout of it on this machine.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "git/git.h"
#include "git/test_support.h"

namespace caisson::git {

using caisson::testing::Await;
using caisson::testing::TempDir;

class GitTest : public ::testing::Test {
 protected:
  GitTest() {
    config.git_retry_min_ms = 1;
    MakeRemote(remote);
  }

  Git Make() {
    return Git(runner, config, path,
               {.progress = [this](const Progress& step) { progress.push_back(step); },
                .finished = [this](const Operation& one) { operations.push_back(one); }});
  }
  void Cloned() {
    auto cloned = Await(io, git.Clone(remote, "", 0));
    ASSERT_TRUE(cloned) << cloned.error().message();
    operations.clear();
    runner.commands.clear();
  }
  void Write(const std::string& name, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(path + "/" + name).parent_path());
    std::ofstream(path + "/" + name) << content;
  }
  std::string Head() { return Rev("HEAD"); }
  std::string Rev(const std::string& name, const std::string& dir = "") {
    std::string text = Must({"git", "rev-parse", name}, dir.empty() ? path : dir);
    return text.substr(0, text.find('\n'));
  }
  std::string CommitHere(const std::string& name, const std::string& content) {
    Write(name, content);
    EXPECT_TRUE(Await(io, git.Stage({})));
    auto made = Await(io, git.Commit("feat: " + name, "", "", {}));
    EXPECT_TRUE(made) << made.error().message();
    return made ? made->sha : "";
  }

  asio::io_context io;
  TempDir temp;
  Config config;
  std::string remote = temp / "remote.git";
  std::string path = temp / "work/repo";
  LocalRunner runner{temp / "home"};
  std::vector<Progress> progress;
  std::vector<Operation> operations;
  Git git = Make();
};

}  // namespace caisson::git

// For tests: remembers what it was asked for and does what the test says.
#pragma once

#include <map>

#include "store/store.h"
#include "work/workshop.h"

namespace caisson::work {

class FakeWorkshop : public Workshop {
 public:
  using Clock = std::chrono::steady_clock;

  Task<Result<std::string>> Open(Job job) override {
    calls.push_back("open");
    if (auto error = TakeError("open")) co_return tl::unexpected(*error);
    auto [it, made] = sandboxes.try_emplace(job.execution_id, "");
    if (made) it->second = "sandbox-" + std::to_string(++count);
    co_return it->second;
  }
  Task<Result<git::CloneResult>> Clone(Job job, std::string base) override {
    calls.push_back("clone");
    if (auto error = TakeError("clone")) co_return tl::unexpected(*error);
    co_return git::CloneResult{
        .path = PathOf(job), .head_sha = "base0", .branch = base.empty() ? "main" : base};
  }
  Task<Result<git::Git::BranchResult>> Branch(Job, std::string name, std::string) override {
    calls.push_back("branch " + name);
    co_return git::Git::BranchResult{
        .branch = name, .base_sha = "base0", .created = !taken.contains(name)};
  }
  Task<Result<sdk::CommandResult>> RunAgent(Job, sdk::Command command) override {
    calls.push_back("agent");
    last_command = command;
    if (auto error = TakeError("agent")) co_return tl::unexpected(*error);
    while (hold_agent) co_await SleepFor(std::chrono::milliseconds(2));
    if (command.on_output) {
      if (!agent_stdout.empty()) command.on_output(sdk::Stream::kStdout, agent_stdout);
      if (!agent_result.stderr_text.empty())
        command.on_output(sdk::Stream::kStderr, agent_result.stderr_text);
    }
    co_return agent_result;
  }
  Task<Status> EndAgent(Job) override {
    calls.push_back("end agent");
    co_return Status();
  }
  Task<Status> Rest(Job) override {
    calls.push_back("rest");
    if (on_rest) co_await on_rest();
    if (auto error = TakeError("rest")) co_return tl::unexpected(*error);
    co_return Status();
  }
  Task<Status> AwaitCommit(Job, std::string) override {
    while (!early_commit) co_await SleepFor(std::chrono::milliseconds(2));
    calls.push_back("first commit");
    co_return Status();
  }
  Task<Result<git::CommitResult>> Commit(Job, CommitRequest request) override {
    calls.push_back("commit");
    last_commit = request;
    if (on_commit) on_commit();
    co_return git::CommitResult{.sha = "head1", .committed = changes};
  }
  Task<Result<std::vector<git::CommitInfo>>> Commits(Job, std::string) override {
    std::vector<git::CommitInfo> commits;
    if (changes) {
      git::CommitInfo commit;
      commit.sha = "head1";
      commit.message = last_commit.message;
      commits.push_back(commit);
    }
    co_return commits;
  }
  Task<Result<git::ChangesResult>> Changes(Job, std::string base,
                                           std::vector<std::string>) override {
    if (auto error = TakeError("changes")) co_return tl::unexpected(*error);
    git::ChangesResult found{.base_sha = base, .head_sha = "head1", .branch = "task"};
    if (changes) {
      found.files.push_back({.path = "a.txt", .added = 1, .change = "added"});
      found.patch = "+a\n";
    }
    co_return found;
  }
  Task<Result<std::string>> Push(Job, std::string branch, bool) override {
    calls.push_back("push " + branch);
    if (on_push) on_push();
    if (auto error = TakeError("push")) co_return tl::unexpected(*error);
    co_return "head1";
  }
  Task<Result<forge::GitHub::Made>> OpenPullRequest(Job, forge::NewPullRequest request) override {
    calls.push_back("pull request");
    if (auto error = TakeError("pull_request")) co_return tl::unexpected(*error);
    last_request = request;
    forge::GitHub::Made made{.created = !pull};
    if (!pull) {
      pull.emplace();
      pull->number = 7;
      pull->url = "https://github.com/acme/garden/pull/7";
      pull->draft = request.draft;
      pull->author = "grace";
    }
    made.pull_request = *pull;
    co_return made;
  }
  Task<Result<forge::PullRequest>> CompletePullRequest(Job, int64_t,
                                                       forge::NewPullRequest request) override {
    calls.push_back("complete");
    if (auto error = TakeError("complete")) co_return tl::unexpected(*error);
    last_request = request;
    pull->draft = request.draft;
    co_return *pull;
  }
  Task<Result<std::chrono::milliseconds>> TimeLeft(Job) override {
    co_return std::chrono::ceil<std::chrono::milliseconds>(leave_at - Clock::now());
  }
  Task<Result<std::string>> Renew(Job job, Renewed also) override {
    calls.push_back("renew");
    if (auto error = TakeError("renew")) co_return tl::unexpected(*error);
    std::string fresh = "sandbox-" + std::to_string(++count);
    CO_TRY(co_await store->Write([&](store::Transaction& tx) { return also(tx, fresh); }));
    sandboxes[job.execution_id] = fresh;
    leave_at = Clock::now() + std::chrono::hours(24);
    co_return fresh;
  }
  Task<Result<Used>> Measure(Job job) override {
    auto it = sandboxes.find(job.execution_id);
    if (it == sandboxes.end()) co_return Used{};
    co_return Used{.sandbox_id = it->second, .running_ms = 3'600'000, .cpu_ms = 90'000};
  }
  Task<Status> Release(Job job, bool keep) override {
    calls.push_back(keep ? "keep" : "destroy");
    if (auto error = TakeError("release")) co_return tl::unexpected(*error);
    if (!keep) sandboxes.erase(job.execution_id);
    co_return Status();
  }
  std::string PathOf(const Job& job) const override { return "/w/" + job.repository.name; }

  // The next calls of `what` fail with these, one after the other.
  void FailNext(const std::string& what, Error error) { errors[what].push_back(std::move(error)); }
  int Count(const std::string& call) const {
    return static_cast<int>(std::ranges::count(calls, call));
  }

  std::vector<std::string> calls;
  std::map<std::string, std::string> sandboxes;                        // by execution
  Clock::time_point leave_at = Clock::now() + std::chrono::hours(24);  // their sandboxes
  store::Store* store = nullptr;                                       // for Renew()
  std::map<std::string, std::vector<Error>> errors;
  std::map<std::string, bool> taken;       // branches that are there already
  std::optional<forge::PullRequest> pull;  // once it was opened
  bool hold_agent = false, changes = true, early_commit = false;
  std::function<void()> on_commit, on_push;
  std::function<Task<void>()> on_rest;
  std::string agent_stdout;
  sdk::CommandResult agent_result;
  sdk::Command last_command;
  CommitRequest last_commit;
  forge::NewPullRequest last_request;

 private:
  std::optional<Error> TakeError(const std::string& what) {
    auto& left = errors[what];
    if (left.empty()) return std::nullopt;
    Error error = left.front();
    left.erase(left.begin());
    return error;
  }
  int count = 0;
};

}  // namespace caisson::work

#include "base/text.h"
#include "git/operations.h"

namespace caisson::git {
namespace {

std::string Local(const std::string& branch) { return "refs/heads/" + branch; }
std::string Tracking(const std::string& branch) { return "refs/remotes/origin/" + branch; }

// Brings one branch of the remote here, also into a clone that follows only another one.
Task<caisson::Status> FetchBranch(Invocation& in, std::string branch) {
  CO_TRY(co_await in.Run({.argv = {"fetch", "--progress", "--no-recurse-submodules", "origin",
                                   fmt::format("+{}:{}", Local(branch), Tracking(branch))},
                          .remote = true}));
  co_return caisson::Status();
}

// The same, and from now on the clone follows this branch, too.
Task<caisson::Status> FollowBranch(Invocation& in, std::string branch) {
  CO_TRY(co_await FetchBranch(in, branch));
  CO_TRY(co_await in.Run({.argv = {"remote", "set-branches", "--add", "origin", branch}}));
  co_return caisson::Status();
}

Task<caisson::Status> FetchAll(Invocation& in, bool main) {
  CO_TRY(co_await in.Run(
      {.argv = {"fetch", "--progress", "--prune", "--no-recurse-submodules", "origin"},
       .timeout = std::chrono::milliseconds(in.config().clone_timeout_ms),
       .main = main,
       .remote = true}));
  co_return caisson::Status();
}

// Checks out a branch that is here or at the remote; false if it is neither.
Task<Result<bool>> SwitchTo(Invocation& in, std::string branch) {
  CO_TRY_ASSIGN(std::string here, co_await FindCommit(in, Local(branch)));
  CO_TRY_ASSIGN(std::string there, co_await FindCommit(in, Tracking(branch)));
  if (here.empty() && there.empty()) co_return false;
  Call call{.argv = {"switch", "--quiet", "--no-recurse-submodules"}};
  if (here.empty())
    call.argv.insert(call.argv.end(), {"--create", branch, "--track", Tracking(branch)});
  else
    call.argv.insert(call.argv.end(), {"--end-of-options", branch});
  CO_TRY(co_await in.Run(std::move(call)));
  co_return true;
}

// Whether the repository of `url` is checked out already.
Task<Result<bool>> IsCheckout(Invocation& in, const std::string& url) {
  Call call{.argv = {"remote", "get-url", "origin"}};
  CO_TRY_ASSIGN(auto found, co_await in.Try(call));
  if (found.exit_code == 0) {
    if (Trim(found.stdout_text) == url) co_return true;
    co_return Fail(Code::kFailedPrecondition, "There is another repository at {}.", in.path());
  }
  std::string why = ToLower(found.stderr_text);
  bool none = why.find("not a git repository") != std::string::npos ||
              why.find("cannot change to") != std::string::npos;
  if (!none) co_return tl::unexpected(in.Explain(call, found));
  co_return false;
}

// Into a directory beside, which gets its name when it is whole: one that was interrupted is never
// taken for a checkout.
Task<caisson::Status> CloneAfresh(Invocation& in, std::string url, std::string branch,
                                  int64_t depth) {
  std::string beside = in.path() + ".cloning";
  CO_TRY(co_await in.RunPlain({"rm", "-rf", "--", beside}));
  Call call{.argv = {"clone", "--progress", "--no-recurse-submodules", "--origin=origin"},
            .timeout = std::chrono::milliseconds(in.config().clone_timeout_ms),
            .main = true,
            .remote = true,
            .in_checkout = false};
  if (depth > 0) {
    call.argv.push_back(fmt::format("--depth={}", depth));
    call.argv.emplace_back("--single-branch");
  }
  if (!branch.empty()) call.argv.push_back("--branch=" + branch);
  call.argv.insert(call.argv.end(), {"--", url, beside});
  CO_TRY(co_await in.Run(std::move(call)));
  auto moved = co_await in.RunPlain({"mv", "-T", "--", beside, in.path()});
  if (moved) co_return moved;
  (void)co_await in.RunPlain({"rm", "-rf", "--", beside});
  co_return Fail(Code::kFailedPrecondition, "There is something else at {}: {}", in.path(),
                 moved.error().message());
}

Task<caisson::Status> BringUpToDate(Invocation& in, std::string branch) {
  CO_TRY(co_await FetchAll(in, /*main=*/true));
  if (!branch.empty()) {
    CO_TRY_ASSIGN(bool there, co_await SwitchTo(in, branch));
    if (!there) {
      // A clone that follows one branch has not seen this one.
      CO_TRY(co_await FollowBranch(in, branch));
      CO_TRY(co_await SwitchTo(in, branch));
    }
  }
  CO_TRY_ASSIGN(std::string current, co_await CurrentBranch(in));
  if (current.empty()) co_return caisson::Status();
  CO_TRY_ASSIGN(std::string upstream, co_await FindCommit(in, Tracking(current)));
  if (upstream.empty()) co_return caisson::Status();
  CO_TRY(co_await in.Run({.argv = {"merge", "--ff-only", "--quiet", upstream}}));
  co_return caisson::Status();
}

// The remote's default branch as it is now.
Task<Result<std::string>> DefaultBranch(Invocation& in) {
  CO_TRY(co_await in.Run({.argv = {"remote", "set-head", "origin", "--auto"}, .remote = true}));
  CO_TRY_ASSIGN(std::string name, co_await in.Line({"symbolic-ref", "--short", Tracking("HEAD")}));
  co_return name.substr(name.find('/') + 1);
}

// On `branch`, at the remote's commit, with no other branch beside it.
Task<caisson::Status> MatchRemote(Invocation& in, std::string branch) {
  CO_TRY(co_await FetchAll(in, /*main=*/true));
  if (branch.empty()) {
    CO_TRY_ASSIGN(branch, co_await DefaultBranch(in));
  }
  CO_TRY(
      co_await in.Run({.argv = {"switch", "--quiet", "--no-recurse-submodules", "--discard-changes",
                                "--force-create", branch, "--track", Tracking(branch)}}));
  CO_TRY_ASSIGN(
      std::string names,
      co_await in.Run({.argv = {"for-each-ref", "refs/heads", "--format=%(refname:lstrip=2)"}}));
  for (std::string_view name : Split(names, '\n'))
    if (!name.empty() && name != branch)
      CO_TRY(co_await in.Run({.argv = {"branch", "--quiet", "-D", "--", std::string(name)}}));
  co_return caisson::Status();
}

// What a clone afresh would meet as well.
bool IsOfTheRemote(const Error& error) {
  return error.code() == Code::kUnavailable || error.code() == Code::kUnauthenticated ||
         error.code() == Code::kDeadlineExceeded;
}

Task<Result<bool>> UsesLfs(Invocation& in) {
  CO_TRY_ASSIGN(auto found,
                co_await in.Try({.argv = {"grep", "--quiet", "--fixed-strings", "-e", "filter=lfs",
                                          "HEAD", "--", ":(glob)**/.gitattributes"}}));
  co_return found.exit_code == 0;
}

// What the remote's branch is at, "" if it has none.
Task<Result<std::string>> RemoteCommit(Invocation& in, const std::string& branch) {
  CO_TRY_ASSIGN(
      std::string listed,
      co_await in.Run({.argv = {"ls-remote", "--refs", "origin", Local(branch)}, .remote = true}));
  co_return listed.substr(0, listed.find('\t'));
}

// As SwitchTo(), for a clone that follows only some branches and may not have seen this one.
Task<Result<bool>> SwitchToUnseen(Invocation& in, std::string branch) {
  CO_TRY_ASSIGN(bool follows_all,
                co_await in.Ask({"config", "--get", "remote.origin.fetch", "refs/heads/\\*:"}));
  if (follows_all) co_return false;
  CO_TRY_ASSIGN(std::string at, co_await RemoteCommit(in, branch));
  if (at.empty()) co_return false;
  CO_TRY(co_await FollowBranch(in, branch));
  co_return co_await SwitchTo(in, branch);
}

Task<Result<CloneResult>> DescribeClone(Invocation& in, bool cloned) {
  CloneResult result{.path = in.path(), .cloned = cloned};
  CO_TRY_ASSIGN(result.head_sha, co_await FindCommit(in, "HEAD"));
  CO_TRY_ASSIGN(result.branch, co_await CurrentBranch(in));
  if (result.head_sha.empty()) co_return result;
  CO_TRY_ASSIGN(result.uses_lfs, co_await UsesLfs(in));
  if (result.uses_lfs)
    in.Report(
        "This repository uses Git LFS, which is not supported: its large files are pointers.");
  co_return result;
}

}  // namespace

Task<Result<CloneResult>> RunClone(Invocation& in, std::string url, std::string branch,
                                   int64_t depth) {
  CO_TRY_ASSIGN(bool there, co_await IsCheckout(in, url));
  if (there)
    CO_TRY(co_await BringUpToDate(in, branch));
  else
    CO_TRY(co_await CloneAfresh(in, url, branch, depth));
  co_return co_await DescribeClone(in, !there);
}

Task<Result<CloneResult>> RunRefresh(Invocation& in, std::string url, std::string branch,
                                     int64_t depth) {
  auto there = co_await IsCheckout(in, url);
  if (there && *there) {
    caisson::Status matched = co_await MatchRemote(in, branch);
    if (matched) co_return co_await DescribeClone(in, /*cloned=*/false);
    if (IsOfTheRemote(matched.error())) co_return tl::unexpected(std::move(matched).error());
    in.Report("What was checked out cannot be used and is cloned afresh: " +
              matched.error().message());
  }
  CO_TRY(co_await in.RunPlain({"rm", "-rf", "--", in.path()}));
  CO_TRY(co_await CloneAfresh(in, url, branch, depth));
  co_return co_await DescribeClone(in, /*cloned=*/true);
}

Task<Result<BranchResult>> RunBranch(Invocation& in, std::string name, std::string base) {
  CO_TRY_ASSIGN(bool remote, co_await in.Ask({"config", "--get", "remote.origin.url"}));
  if (remote) CO_TRY(co_await FetchAll(in, /*main=*/false));
  BranchResult result{.branch = name};
  CO_TRY_ASSIGN(bool there, co_await SwitchTo(in, name));
  if (!there && remote) {
    CO_TRY_ASSIGN(there, co_await SwitchToUnseen(in, name));
  }
  if (there) {
    result.created = false;
    CO_TRY_ASSIGN(result.base_sha, co_await FindCommit(in, "HEAD"));
    co_return result;
  }
  if (base.empty()) {
    CO_TRY_ASSIGN(base, co_await CurrentBranch(in));
  }
  if (!base.empty()) {
    CO_TRY_ASSIGN(result.base_sha, co_await FindCommit(in, Tracking(base)));
    CO_TRY_ASSIGN(std::string local, co_await FindCommit(in, Local(base)));
    if (result.base_sha.empty()) result.base_sha = local;
    if (result.base_sha.empty() && remote) {
      auto fetched = co_await FetchBranch(in, base);
      if (!fetched && fetched.error().code() != Code::kNotFound)
        co_return tl::unexpected(fetched.error());
      CO_TRY_ASSIGN(result.base_sha, co_await FindCommit(in, Tracking(base)));
    }
  } else {
    CO_TRY_ASSIGN(result.base_sha, co_await FindCommit(in, "HEAD"));
  }
  if (result.base_sha.empty())
    co_return Fail(Code::kNotFound, "The base branch \"{}\" does not exist.", base);
  CO_TRY(co_await in.Run({.argv = {"switch", "--quiet", "--no-recurse-submodules", "--no-track",
                                   "--create", name, result.base_sha},
                          .main = true}));
  co_return result;
}

Task<Result<std::string>> RunPush(Invocation& in, std::string branch) {
  if (branch.empty()) {
    CO_TRY_ASSIGN(branch, co_await CurrentBranch(in));
    if (branch.empty()) co_return Fail(Code::kFailedPrecondition, "HEAD is not on a branch.");
  }
  CO_TRY_ASSIGN(std::string sha, co_await FindCommit(in, Local(branch)));
  if (sha.empty()) co_return Fail(Code::kNotFound, "There is no branch \"{}\".", branch);
  // Repeated here and not by Try(): between two attempts the remote is asked.
  Call call{.argv = {"push", "--progress", "--no-verify", "--no-signed", "--set-upstream",
                     "--recurse-submodules=no", "--", "origin",
                     fmt::format("{}:{}", Local(branch), Local(branch))},
            .timeout = std::chrono::milliseconds(in.config().clone_timeout_ms),
            .main = true,
            .remote = true,
            .repeat = false};
  for (int attempt = 1;; ++attempt) {
    in.operation().attempts = attempt;
    auto pushed = co_await in.Try(call);
    if (pushed && pushed->exit_code == 0) co_return sha;
    if (!pushed && pushed.error().code() != Code::kUnavailable)
      co_return tl::unexpected(pushed.error());
    Error why = pushed ? in.Explain(call, *pushed) : pushed.error();
    if (why.code() != Code::kUnavailable) co_return tl::unexpected(std::move(why));
    if (attempt >= in.config().git_attempts) co_return tl::unexpected(std::move(why));
    co_await in.PauseBefore(attempt + 1);
    // Only the answer may have been lost; then a second push would be one too many.
    auto there = co_await RemoteCommit(in, branch);
    if (there && *there == sha) {
      CO_TRY(co_await FetchBranch(in, branch));
      CO_TRY(co_await in.Run(
          {.argv = {"branch", "--quiet", "--set-upstream-to=origin/" + branch, "--", branch}}));
      co_return sha;
    }
  }
}

Task<Result<PullResult>> RunPull(Invocation& in, bool rebase) {
  CO_TRY_ASSIGN(StatusResult status, co_await RunStatus(in));
  if (status.branch.empty()) co_return Fail(Code::kFailedPrecondition, "HEAD is not on a branch.");
  if (!status.staged.empty() || !status.modified.empty() || !status.conflicted.empty())
    co_return Fail(Code::kFailedPrecondition,
                   "There are changes that are not committed; commit them before you pull.");
  CO_TRY(co_await FetchBranch(in, status.branch));
  CO_TRY_ASSIGN(std::string before, co_await FindCommit(in, "HEAD"));
  std::string upstream = Tracking(status.branch);
  Call call{.argv = rebase
                        ? std::vector<std::string>{"rebase", "--no-autostash", upstream}
                        : std::vector<std::string>{"merge", "--no-edit", "--no-verify", upstream},
            .main = true};
  CO_TRY_ASSIGN(auto joined, co_await in.Try(call));
  PullResult result{.branch = status.branch};
  if (joined.exit_code != 0) {
    Error why = in.Explain(call, joined);
    CO_TRY_ASSIGN(std::string names,
                  co_await in.Run({.argv = {"diff", "--name-only", "--diff-filter=U", "-z"}}));
    result.conflicts = ParseNames(names);
    auto undone = co_await in.Run({.argv = {rebase ? "rebase" : "merge", "--abort"}});
    if (result.conflicts.empty()) co_return tl::unexpected(std::move(why));
    if (!undone) co_return tl::unexpected(undone.error());
    in.NoteConflict();
  }
  CO_TRY_ASSIGN(result.head_sha, co_await FindCommit(in, "HEAD"));
  result.moved = result.head_sha != before;
  co_return result;
}

}  // namespace caisson::git

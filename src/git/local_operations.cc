#include "base/text.h"
#include "git/operations.h"

namespace caisson::git {
namespace {

// What git calls the tree of a repository without commits.
constexpr std::string_view kEmptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

bool HasLine(std::string_view text, std::string_view line) {
  for (std::string_view one : Split(text, '\n'))
    if (Trim(one) == line) return true;
  return false;
}

// The message with the trailers as its last paragraph.
std::string WithTrailers(std::string_view message, const std::vector<std::string>& trailers) {
  std::string text(Trim(message));
  text += "\n";
  if (!trailers.empty()) text += "\n";
  for (const std::string& trailer : trailers) text += trailer + "\n";
  return text;
}

// The files that the commit at HEAD changed.
Task<Result<std::vector<std::string>>> FilesOfHead(Invocation& in) {
  CO_TRY_ASSIGN(std::string names,
                co_await in.Run({.argv = {"diff-tree", "--root", "--no-commit-id", "--name-only",
                                          "-r", "-z", "HEAD"}}));
  co_return ParseNames(names);
}

// True if the commit at HEAD is the one that was asked for before.
Task<Result<bool>> IsRepeated(Invocation& in, std::string head,
                              const std::vector<std::string>& trailers) {
  if (head.empty() || trailers.empty()) co_return false;
  CO_TRY_ASSIGN(
      std::string message,
      co_await in.Run({.argv = {"log", "-1", "--no-show-signature", "--format=%B", head}}));
  for (const std::string& trailer : trailers)
    if (!HasLine(message, trailer)) co_return false;
  co_return true;
}

}  // namespace

Task<Result<std::string>> FindCommit(Invocation& in, std::string revision) {
  CO_TRY_ASSIGN(auto found,
                co_await in.Try({.argv = {"rev-parse", "--verify", "--quiet", "--end-of-options",
                                          revision + "^{commit}"}}));
  if (found.exit_code == 0) co_return std::string(Trim(found.stdout_text));
  // Quiet about revisions that are not there, not about repositories that are not.
  Call call{.argv = {"rev-parse"}};
  if (!Trim(found.stderr_text).empty()) co_return tl::unexpected(in.Explain(call, found));
  co_return std::string();
}

Task<Result<std::string>> CurrentBranch(Invocation& in) {
  Call call{.argv = {"symbolic-ref", "--quiet", "--short", "HEAD"}};
  CO_TRY_ASSIGN(auto found, co_await in.Try(call));
  if (found.exit_code > 1) co_return tl::unexpected(in.Explain(call, found));
  co_return std::string(Trim(found.stdout_text));
}

Task<Result<CloneResult>> RunInit(Invocation& in, Time at) {
  // Of a repository that is there it changes nothing; of one that was interrupted it makes the
  // rest.
  CO_TRY(co_await in.Run({.argv = {"init", "--quiet", "--initial-branch=main", "--", in.path()},
                          .main = true,
                          .in_checkout = false}));
  CloneResult result{.path = in.path(), .cloned = false};
  CO_TRY_ASSIGN(result.head_sha, co_await FindCommit(in, "HEAD"));
  if (result.head_sha.empty()) {
    result.cloned = true;
    std::string date = fmt::format("@{} +0000", UnixSeconds(at));
    CO_TRY(co_await in.Run({.argv = {"commit", "--quiet", "--allow-empty", "--no-verify",
                                     "--no-gpg-sign", "--message=chore: begin"},
                            .env = {{"GIT_AUTHOR_DATE", date}, {"GIT_COMMITTER_DATE", date}}}));
    CO_TRY_ASSIGN(result.head_sha, co_await FindCommit(in, "HEAD"));
  }
  CO_TRY_ASSIGN(result.branch, co_await CurrentBranch(in));
  co_return result;
}

Task<Result<std::vector<std::string>>> RunStage(Invocation& in, std::vector<std::string> patterns) {
  Call call{.argv = {"add", "--all"}, .main = true};
  if (!patterns.empty()) {
    // By standard input, so that no pattern can be taken for an option.
    call.argv.insert(call.argv.end(), {"--pathspec-from-file=-", "--pathspec-file-nul"});
    for (const std::string& pattern : patterns) call.input += pattern + '\0';
  }
  CO_TRY(co_await in.Run(std::move(call)));
  CO_TRY_ASSIGN(StatusResult status, co_await RunStatus(in));
  co_return std::move(status.staged);
}

Task<Result<CommitResult>> RunCommit(Invocation& in, CommitOrder order) {
  CommitResult result;
  CO_TRY_ASSIGN(result.sha, co_await FindCommit(in, "HEAD"));
  CO_TRY_ASSIGN(bool repeated, co_await IsRepeated(in, result.sha, order.trailers));
  if (!repeated) {
    CO_TRY_ASSIGN(StatusResult status, co_await RunStatus(in));
    if (!status.conflicted.empty())
      co_return Fail(Code::kAborted, "There are conflicts to resolve first: {}.",
                     fmt::join(status.conflicted, ", "));
    if (status.staged.empty()) {
      result.committed = false;
      co_return result;
    }
    Call call{
        .argv = {"commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim",
                 "--file=-"},
        .input = WithTrailers(order.message, order.trailers),
        .env = {{"GIT_AUTHOR_NAME", order.author_name}, {"GIT_AUTHOR_EMAIL", order.author_email}},
        .main = true};
    CO_TRY(co_await in.Run(std::move(call)));
    CO_TRY_ASSIGN(result.sha, co_await FindCommit(in, "HEAD"));
  }
  CO_TRY_ASSIGN(result.files, co_await FilesOfHead(in));
  co_return result;
}

Task<Result<StatusResult>> RunStatus(Invocation& in) {
  // A tree full of untracked files would not fit; then their directories stand for them.
  Call call{.argv = {"status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all"},
            .main = in.operation().name == "status"};
  CO_TRY_ASSIGN(auto result, co_await in.Try(call));
  if (result.exit_code != 0) co_return tl::unexpected(in.Explain(call, result));
  if (result.truncated) {
    call.argv.back() = "--untracked-files=normal";
    CO_TRY_ASSIGN(result.stdout_text, co_await in.Run(call));
  }
  co_return ParseStatus(result.stdout_text);
}

Task<Result<DiffResult>> RunDiff(Invocation& in, std::string base, std::vector<std::string> files) {
  CO_TRY_ASSIGN(std::string commit, co_await FindCommit(in, base.empty() ? "HEAD" : base));
  if (commit.empty() && !base.empty())
    co_return Fail(Code::kNotFound, "There is no commit \"{}\" to compare with.", base);
  if (commit.empty()) commit = kEmptyTree;

  Call call{.argv = {"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames"},
            .env = {{"GIT_LITERAL_PATHSPECS", "1"}}};
  Call numbers = call;
  numbers.argv.insert(numbers.argv.end(), {"--numstat", "-z"});
  for (Call* one : {&call, &numbers}) {
    one->argv.insert(one->argv.end(), {commit, "--"});
    one->argv.insert(one->argv.end(), files.begin(), files.end());
  }
  call.main = true;
  call.max_output = static_cast<size_t>(in.config().git_diff_bytes);
  CO_TRY_ASSIGN(auto text, co_await in.Try(call));
  if (text.exit_code != 0) co_return tl::unexpected(in.Explain(call, text));
  CO_TRY_ASSIGN(std::string counted, co_await in.Run(std::move(numbers)));

  DiffResult result{.truncated = text.truncated, .files = ParseNumstat(counted)};
  // Cut between two lines.
  if (text.truncated) text.stdout_text.resize(text.stdout_text.rfind('\n') + 1);
  result.text = ToUtf8(text.stdout_text);
  co_return result;
}

Task<Result<std::vector<CommitInfo>>> RunHistory(Invocation& in, int count, std::string range) {
  CO_TRY_ASSIGN(std::string head, co_await FindCommit(in, "HEAD"));
  if (head.empty() && range.empty()) co_return std::vector<CommitInfo>();
  CO_TRY_ASSIGN(std::string log,
                co_await in.Run({.argv = {"log", "-z", "--no-show-signature", "--no-color",
                                          fmt::format("--max-count={}", count),
                                          fmt::format("--format=tformat:{}", kLogFormat),
                                          "--end-of-options", range.empty() ? "HEAD" : range, "--"},
                                 .main = true}));
  co_return ParseLog(log);
}

Task<Result<std::string>> RunTag(Invocation& in, std::string name, std::string message) {
  CO_TRY_ASSIGN(std::string head, co_await FindCommit(in, "HEAD"));
  if (head.empty()) co_return Fail(Code::kFailedPrecondition, "There is no commit to tag yet.");
  CO_TRY_ASSIGN(std::string there, co_await FindCommit(in, "refs/tags/" + name));
  if (there == head) co_return head;
  if (!there.empty())
    co_return Fail(Code::kAlreadyExists, "The tag \"{}\" is there already, at {}.", name, there);
  Call call{.argv = {"tag", "--no-sign"}, .input = message, .main = true};
  if (!message.empty()) call.argv.insert(call.argv.end(), {"--annotate", "--file=-"});
  call.argv.insert(call.argv.end(), {"--", name});
  CO_TRY(co_await in.Run(std::move(call)));
  co_return head;
}

}  // namespace caisson::git

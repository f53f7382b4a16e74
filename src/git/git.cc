#include "git/git.h"

#include <algorithm>

#include "base/text.h"
#include "git/commit_message.h"
#include "git/operations.h"

namespace caisson::git {
namespace {

constexpr int kMaxHistory = 1000;
constexpr size_t kMaxPatterns = 1000;
constexpr size_t kMaxRevision = 500;
constexpr size_t kMaxTrailers = 20;

bool HasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// SECURITY: revisions and ranges come from clients; git must not take one for an option.
caisson::Status CheckRevision(std::string_view text) {
  if (text.size() > kMaxRevision || text.starts_with('-') || HasControl(text))
    return Fail(Code::kInvalidArgument, "This is not a revision that git knows.");
  return {};
}

caisson::Status CheckFiles(const std::vector<std::string>& files) {
  if (files.size() > kMaxPatterns)
    return Fail(Code::kInvalidArgument, "More than {} files were named.", kMaxPatterns);
  for (const std::string& file : files)
    if (file.empty() || file.find('\0') != std::string::npos)
      return Fail(Code::kInvalidArgument, "The name of a file is empty or holds a zero byte.");
  return {};
}

caisson::Status CheckUrl(std::string_view url) {
  bool known = url.starts_with("http://") || url.starts_with("https://") || url.starts_with("/");
  if (!known || HasControl(url))
    return Fail(Code::kInvalidArgument, "A repository is cloned by http or https.");
  return {};
}

// Lines like "Task: 7", which git takes for trailers.
caisson::Status CheckTrailers(const std::vector<std::string>& trailers) {
  if (trailers.size() > kMaxTrailers)
    return Fail(Code::kInvalidArgument, "A commit has at most {} trailers.", kMaxTrailers);
  for (const std::string& trailer : trailers) {
    size_t colon = trailer.find(": ");
    std::string_view key = std::string_view(trailer).substr(0, colon);
    bool fits = colon != std::string::npos && !key.empty() && !HasControl(trailer) &&
                Trim(trailer) == trailer && std::all_of(key.begin(), key.end(), [](char c) {
                  return isalnum(static_cast<unsigned char>(c)) || c == '-';
                });
    if (!fits)
      return Fail(Code::kInvalidArgument, "\"{}\" is not a trailer like \"Key: value\".", trailer);
  }
  return {};
}

caisson::Status CheckPerson(std::string_view name, std::string_view email) {
  for (std::string_view part : {name, email})
    if (Trim(part).empty() || HasControl(part) || part.find_first_of("<>") != part.npos)
      return Fail(Code::kInvalidArgument,
                  "The author's name and e-mail must be there, without \"<\", \">\" and control "
                  "characters.");
  return {};
}

}  // namespace

Git::Git(sdk::EnvdClient& envd, const Config& config, std::string path, Observer observer,
         std::shared_ptr<Lock> lock)
    : own_runner_(std::make_unique<EnvdRunner>(envd)),
      runner_(*own_runner_),
      config_(config),
      path_(std::move(path)),
      observer_(std::move(observer)),
      lock_(lock ? std::move(lock) : std::make_shared<Lock>()) {}

Git::Git(CommandRunner& runner, const Config& config, std::string path, Observer observer,
         std::shared_ptr<Lock> lock)
    : runner_(runner),
      config_(config),
      path_(std::move(path)),
      observer_(std::move(observer)),
      lock_(lock ? std::move(lock) : std::make_shared<Lock>()) {}

template <class T>
Task<Result<T>> Git::Perform(Invocation& invocation, Task<Result<T>> work) {
  if (!path_.starts_with('/') || HasControl(path_))
    co_return Fail(Code::kInvalidArgument, "The path of a checkout must be absolute.");
  CO_TRY_ASSIGN(auto guard,
                co_await lock_->Acquire(std::chrono::milliseconds(config_.git_lock_wait_ms)));
  invocation.Begin();
  Result<T> result = co_await std::move(work);
  invocation.Finish(result ? nullptr : &result.error());
  co_return result;
}

Task<Result<CloneResult>> Git::Clone(std::string url, std::string branch, int64_t depth) {
  CO_TRY(CheckUrl(url));
  if (!branch.empty()) CO_TRY(CheckBranchName(branch));
  Invocation invocation(runner_, config_, path_, observer_, "clone");
  co_return co_await Perform(invocation, RunClone(invocation, url, branch, depth));
}

Task<Result<CloneResult>> Git::Refresh(std::string url, std::string branch, int64_t depth) {
  CO_TRY(CheckUrl(url));
  if (!branch.empty()) CO_TRY(CheckBranchName(branch));
  Invocation invocation(runner_, config_, path_, observer_, "clone");
  co_return co_await Perform(invocation, RunRefresh(invocation, url, branch, depth));
}

Task<Result<CloneResult>> Git::Init(Time at) {
  Invocation invocation(runner_, config_, path_, observer_, "init");
  co_return co_await Perform(invocation, RunInit(invocation, at));
}

Task<Result<BranchResult>> Git::Branch(std::string name, std::string base) {
  CO_TRY(CheckBranchName(name));
  if (!base.empty()) CO_TRY(CheckBranchName(base));
  Invocation invocation(runner_, config_, path_, observer_, "branch");
  co_return co_await Perform(invocation, RunBranch(invocation, name, base));
}

Task<Result<std::vector<std::string>>> Git::Stage(std::vector<std::string> patterns) {
  CO_TRY(CheckFiles(patterns));
  Invocation invocation(runner_, config_, path_, observer_, "stage");
  co_return co_await Perform(invocation, RunStage(invocation, std::move(patterns)));
}

Task<Result<CommitResult>> Git::Commit(std::string message, std::string author_name,
                                       std::string author_email,
                                       std::vector<std::string> trailers) {
  CO_TRY(CheckCommitMessage(message));
  CO_TRY(CheckTrailers(trailers));
  if (author_name.empty()) author_name = config_.git_user_name;
  if (author_email.empty()) author_email = config_.git_user_email;
  CO_TRY(CheckPerson(author_name, author_email));
  Invocation invocation(runner_, config_, path_, observer_, "commit");
  CommitOrder order{message, author_name, author_email, trailers};
  co_return co_await Perform(invocation, RunCommit(invocation, std::move(order)));
}

Task<Result<std::string>> Git::Push(std::string branch) {
  if (!branch.empty()) CO_TRY(CheckBranchName(branch));
  Invocation invocation(runner_, config_, path_, observer_, "push");
  co_return co_await Perform(invocation, RunPush(invocation, branch));
}

Task<Result<StatusResult>> Git::Status() {
  Invocation invocation(runner_, config_, path_, observer_, "status");
  co_return co_await Perform(invocation, RunStatus(invocation));
}

Task<Result<DiffResult>> Git::Diff(std::string base, std::vector<std::string> files) {
  CO_TRY(CheckRevision(base));
  CO_TRY(CheckFiles(files));
  Invocation invocation(runner_, config_, path_, observer_, "diff");
  co_return co_await Perform(invocation, RunDiff(invocation, base, std::move(files)));
}

Task<Result<ChangesResult>> Git::Changes(std::string base, std::vector<std::string> leave_out,
                                         int64_t max_bytes) {
  CO_TRY(CheckRevision(base));
  CO_TRY(CheckFiles(leave_out));
  Invocation invocation(runner_, config_, path_, observer_, "changes");
  co_return co_await Perform(invocation, RunChanges(invocation, base, std::move(leave_out),
                                                    std::max<int64_t>(max_bytes, 1)));
}

Task<Result<std::vector<CommitInfo>>> Git::History(int count, std::string range) {
  CO_TRY(CheckRevision(range));
  Invocation invocation(runner_, config_, path_, observer_, "history");
  co_return co_await Perform(invocation,
                             RunHistory(invocation, std::clamp(count, 1, kMaxHistory), range));
}

Task<Result<PullResult>> Git::Pull(bool rebase) {
  Invocation invocation(runner_, config_, path_, observer_, "pull");
  co_return co_await Perform(invocation, RunPull(invocation, rebase));
}

Task<Result<std::string>> Git::Tag(std::string name, std::string message) {
  CO_TRY(CheckBranchName(name));
  if (message.find('\0') != std::string::npos)
    co_return Fail(Code::kInvalidArgument, "The message of the tag holds a zero byte.");
  Invocation invocation(runner_, config_, path_, observer_, "tag");
  co_return co_await Perform(invocation, RunTag(invocation, name, message));
}

}  // namespace caisson::git

// What an agent has changed so far, looked at without touching anything it could notice.
#include "base/id.h"
#include "base/text.h"
#include "git/operations.h"

namespace caisson::git {
namespace {

constexpr size_t kMaxFiles = 2'000;

// The commit that this branch and `base` have in common; `base` itself if none is known.
Task<Result<std::string>> MeetingPoint(Invocation& in, std::string base) {
  CO_TRY_ASSIGN(std::string commit, co_await FindCommit(in, base));
  if (commit.empty())
    co_return Fail(Code::kNotFound, "There is no commit \"{}\" to compare with.", base);
  CO_TRY_ASSIGN(auto found, co_await in.Try({.argv = {"merge-base", commit, "HEAD"}}));
  std::string_view meeting = Trim(found.stdout_text);
  co_return found.exit_code == 0 && !meeting.empty() ? std::string(meeting) : commit;
}

// Makes an index in which files that git does not follow are as good as added.
Task<caisson::Status> MakeIndex(Invocation& in, const std::string& index,
                                const std::vector<std::string>& leave_out) {
  std::map<std::string, std::string> env = {{"GIT_INDEX_FILE", index}};
  CO_TRY(co_await in.Run({.argv = {"read-tree", "HEAD"}, .env = env}));
  Call add{.argv = {"add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"},
           .env = env};
  add.input = std::string(".") + '\0';
  for (const std::string& one : leave_out) add.input += one + '\0';
  CO_TRY(co_await in.Run(std::move(add)));
  co_return caisson::Status();
}

// What fits, without the line or the name that was cut.
Task<Result<std::string>> Print(Invocation& in, Call call, char end, bool& truncated) {
  CO_TRY_ASSIGN(auto result, co_await in.Try(call));
  if (result.exit_code != 0) co_return tl::unexpected(in.Explain(call, result));
  if (result.truncated) {
    truncated = true;
    result.stdout_text.resize(result.stdout_text.rfind(end) + 1);
  }
  co_return std::move(result.stdout_text);
}

// No database takes zero bytes for text, and a file with some may call itself text.
std::string PlainText(std::string text) {
  text = ToUtf8(text);
  std::erase(text, '\0');
  return text;
}

// With the tree as `index` has it.
Task<caisson::Status> Compare(Invocation& in, const std::string& index, int64_t max_bytes,
                              ChangesResult& result) {
  auto diff = [&](std::vector<std::string> options) {
    Call call{.argv = {"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames"},
              .env = {{"GIT_INDEX_FILE", index}}};
    call.argv.insert(call.argv.end(), options.begin(), options.end());
    call.argv.insert(call.argv.end(), {result.base_sha, "--"});
    return call;
  };
  CO_TRY_ASSIGN(std::string counted,
                co_await Print(in, diff({"--numstat", "-z"}), '\0', result.truncated));
  CO_TRY_ASSIGN(std::string changed,
                co_await Print(in, diff({"--name-status", "-z"}), '\0', result.truncated));
  Call text = diff({});
  text.main = true;
  text.max_output = static_cast<size_t>(max_bytes);
  CO_TRY_ASSIGN(result.patch, co_await Print(in, std::move(text), '\n', result.truncated));
  result.patch = PlainText(std::move(result.patch));
  result.files = ParseNumstat(counted);
  SetChanges(result.files, changed);
  result.truncated |= result.files.size() > kMaxFiles;
  result.files.resize(std::min(result.files.size(), kMaxFiles));
  co_return caisson::Status();
}

}  // namespace

Task<Result<ChangesResult>> RunChanges(Invocation& in, std::string base,
                                       std::vector<std::string> leave_out, int64_t max_bytes) {
  ChangesResult result;
  CO_TRY_ASSIGN(result.base_sha, co_await MeetingPoint(in, base.empty() ? "HEAD" : base));
  CO_TRY_ASSIGN(result.head_sha, co_await FindCommit(in, "HEAD"));
  CO_TRY_ASSIGN(result.branch, co_await CurrentBranch(in));
  // An index of our own: the agent's is not touched, none of its commands ever waits for ours, and
  // several may look at once.
  std::string index = in.path() + "/.git/caisson-index-" + RandomHex(4);
  auto done = co_await MakeIndex(in, index, leave_out);
  if (done) done = co_await Compare(in, index, max_bytes, result);
  CO_TRY(co_await in.RunPlain({"rm", "-f", "--", index, index + ".lock"}));
  if (!done) co_return tl::unexpected(done.error());
  co_return result;
}

}  // namespace caisson::git

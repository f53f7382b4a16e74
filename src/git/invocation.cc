#include "git/invocation.h"

#include "base/text.h"
#include "git/recovery.h"

namespace caisson::git {
namespace {

constexpr size_t kMaxRecordedOutput = 4000;
constexpr std::chrono::milliseconds kPlainTimeout{60'000};

// SECURITY: what a repository, a template or the agent may have left behind must not change what
// our commands do: no hooks, no helpers, no transports but HTTP, no programs of the configuration.
// All of it runs inside the sandbox as its user anyway; this keeps the answers honest. A file
// transport only for addresses that come from us, never for a submodule's.
constexpr std::string_view kSettings[] = {
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.askPass=",
    "core.editor=true",
    "core.pager=cat",
    "core.quotePath=false",
    "credential.helper=",
    "protocol.allow=never",
    "protocol.http.allow=always",
    "protocol.https.allow=always",
    "protocol.file.allow=user",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "push.gpgSign=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "rerere.enabled=false",
    "rebase.autoStash=false",
    "merge.autoStash=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "color.ui=false",
    "advice.detachedHead=false",
    // LFS is not supported: pointers stay pointers instead of failing a checkout.
    "filter.lfs.smudge=",
    "filter.lfs.clean=",
    "filter.lfs.process=",
    "filter.lfs.required=false",
};

}  // namespace

Invocation::Invocation(CommandRunner& runner, const Config& config, const std::string& path,
                       const Observer& observer, std::string name)
    : runner_(runner), config_(config), path_(path), observer_(observer) {
  operation_.name = std::move(name);
}

sdk::Command Invocation::Harden(const Call& call) {
  sdk::Command command;
  command.argv = {"git"};
  for (std::string_view setting : kSettings) {
    command.argv.emplace_back("-c");
    command.argv.emplace_back(setting);
  }
  command.env = {{"LC_ALL", "C"},
                 {"GIT_TERMINAL_PROMPT", "0"},
                 {"GIT_ASKPASS", ""},
                 {"GIT_CONFIG_NOSYSTEM", "1"},
                 {"GIT_CONFIG_GLOBAL", "/dev/null"},
                 {"GIT_CONFIG_COUNT", "0"},
                 {"GIT_ATTR_NOSYSTEM", "1"},
                 {"GIT_OPTIONAL_LOCKS", "0"},
                 {"GIT_EDITOR", "true"},
                 {"GIT_SEQUENCE_EDITOR", "true"},
                 {"GIT_LFS_SKIP_SMUDGE", "1"},
                 // The broker is on the sandbox's own loopback.
                 {"no_proxy", "127.0.0.1,localhost"},
                 {"NO_PROXY", "127.0.0.1,localhost"},
                 {"GIT_AUTHOR_NAME", config_.git_user_name},
                 {"GIT_AUTHOR_EMAIL", config_.git_user_email},
                 {"GIT_COMMITTER_NAME", config_.git_user_name},
                 {"GIT_COMMITTER_EMAIL", config_.git_user_email}};
  if (call.in_checkout) {
    command.argv.insert(command.argv.end(), {"-C", path_});
    // Named, so that git does not look for a repository further up.
    command.env["GIT_DIR"] = path_ + "/.git";
    command.env["GIT_WORK_TREE"] = path_;
  }
  command.argv.insert(command.argv.end(), call.argv.begin(), call.argv.end());
  for (const auto& [name, value] : call.env) command.env[name] = value;
  command.stdin_text = call.input;
  command.timeout =
      call.timeout.count() > 0 ? call.timeout : std::chrono::milliseconds(config_.git_timeout_ms);
  command.max_output = call.max_output;
  if (call.remote && observer_.progress) {
    command.on_output = [this](sdk::Stream stream, std::string_view piece) {
      if (stream != sdk::Stream::kStderr) return;
      for (Progress& step : progress_.Feed(piece)) {
        step.operation = operation_.name;
        observer_.progress(step);
      }
    };
  }
  return command;
}

Task<Result<sdk::CommandResult>> Invocation::Once(const Call& call) {
  sdk::Command command = Harden(call);
  if (call.main) operation_.argv = command.argv;
  auto result = co_await runner_.Run(std::move(command));
  if (!result) {
    if (call.main) operation_.exit_code = -1;
    operation_.failure =
        result.error().code() == Code::kUnavailable ? Failure::kNetwork : Failure::kOther;
    co_return result;
  }
  if (call.main) {
    operation_.exit_code = result->exit_code;
    operation_.output = GitsOwnWords(result->stderr_text, kMaxRecordedOutput);
  }
  if (result->timed_out) {
    // It was killed in the middle, so the locks it held are nobody's now.
    if (call.in_checkout) co_await RemoveLocks();
    operation_.failure = call.remote ? Failure::kNetwork : Failure::kOther;
    co_return Fail(Code::kDeadlineExceeded, "git {} took longer than {} ms and was stopped.",
                   call.argv.front(),
                   call.timeout.count() > 0 ? call.timeout.count() : config_.git_timeout_ms);
  }
  co_return result;
}

Task<Result<sdk::CommandResult>> Invocation::Try(Call call) {
  for (int attempt = 1;; ++attempt) {
    auto result = co_await Once(call);
    if (result && result->exit_code == 0) co_return result;
    bool lost = !result && result.error().code() == Code::kUnavailable;
    Failure why = result ? ClassifyStderr(result->stderr_text) : Failure::kOther;
    bool again = why == Failure::kLocked ||
                 (call.remote && call.repeat && (lost || why == Failure::kNetwork));
    if (!again || attempt >= config_.git_attempts) co_return result;
    if (call.main) operation_.attempts = attempt + 1;
    co_await PauseBefore(attempt + 1);
  }
}

Task<Result<std::string>> Invocation::Run(Call call) {
  CO_TRY_ASSIGN(auto result, co_await Try(call));
  if (result.exit_code != 0) co_return tl::unexpected(Explain(call, result));
  if (result.truncated)
    co_return Fail(Code::kOutOfRange, "git {} printed more than {} bytes.", call.argv.front(),
                   call.max_output);
  co_return std::move(result.stdout_text);
}

Task<Result<std::string>> Invocation::Line(std::vector<std::string> argv) {
  CO_TRY_ASSIGN(std::string output, co_await Run({.argv = std::move(argv)}));
  co_return std::string(Trim(output));
}

Task<Result<bool>> Invocation::Ask(std::vector<std::string> argv) {
  Call call{.argv = std::move(argv)};
  CO_TRY_ASSIGN(auto result, co_await Try(call));
  if (result.exit_code > 1) co_return tl::unexpected(Explain(call, result));
  co_return result.exit_code == 0;
}

Task<caisson::Status> Invocation::RunPlain(std::vector<std::string> argv) {
  sdk::Command command{.argv = argv, .env = {{"LC_ALL", "C"}}, .timeout = kPlainTimeout};
  CO_TRY_ASSIGN(auto result, co_await runner_.Run(std::move(command)));
  if (result.exit_code == 0 && !result.timed_out) co_return caisson::Status();
  operation_.failure = Failure::kOther;
  co_return Fail(Code::kFailedPrecondition, "{}: {}", argv.front(),
                 GitsOwnWords(result.stderr_text));
}

Error Invocation::Explain(const Call& call, const sdk::CommandResult& result) {
  // What conflicts is printed to the other stream.
  std::string text = result.stderr_text + "\n" + result.stdout_text.substr(0, kMaxRecordedOutput);
  operation_.failure = ClassifyStderr(text);
  std::string words = GitsOwnWords(result.stderr_text);
  if (words.empty()) words = GitsOwnWords(result.stdout_text);
  if (words.empty()) words = fmt::format("it ended with code {}", result.exit_code);
  std::string_view recovery = RecoveryOf(operation_.failure);
  return Error(CodeOf(operation_.failure), fmt::format("git {}: {}{}{}", call.argv.front(), words,
                                                       recovery.empty() ? "" : ". ", recovery));
}

Task<void> Invocation::PauseBefore(int next) {
  int doublings = std::min(next - 2, 10);
  co_await SleepFor(std::chrono::milliseconds(config_.git_retry_min_ms << doublings));
}

Task<void> Invocation::RemoveLocks() {
  (void)co_await RunPlain({"rm", "-f", "--", path_ + "/.git/index.lock", path_ + "/.git/HEAD.lock",
                           path_ + "/.git/config.lock"});
}

void Invocation::Report(std::string text) {
  if (observer_.progress)
    observer_.progress({.operation = operation_.name, .text = std::move(text)});
}

void Invocation::Begin() {
  begun_ = std::chrono::steady_clock::now();
  if (observer_.started) observer_.started(operation_.name);
}

void Invocation::Finish(const Error* error) {
  operation_.duration = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begun_);
  if (!error) {
    operation_.failure = conflict_ ? Failure::kConflict : Failure::kNone;
  } else {
    if (operation_.failure == Failure::kNone) operation_.failure = Failure::kOther;
    if (operation_.output.empty()) operation_.output = error->message();
  }
  if (observer_.finished) observer_.finished(operation_);
}

}  // namespace caisson::git

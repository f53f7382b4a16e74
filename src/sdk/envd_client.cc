// Commands; files are in envd_files.cc.
#include "sdk/envd_client.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/json.hpp>
#include <csignal>

#include "base/encoding.h"
#include "base/id.h"
#include "sdk/envd_call.h"
#include "sdk/process_stream.h"
#include "sdk/utf8_decoder.h"

namespace caisson::sdk {
namespace {

namespace json = boost::json;
using namespace asio::experimental::awaitable_operators;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr size_t kInputChunk = 256 << 10;
// envd ends what takes too long; if it has not said so after this time, we do it.
constexpr milliseconds kTimeoutGrace{5'000};
constexpr milliseconds kKillTimeout{10'000};
constexpr int kUnseenAttempts = 3;
constexpr milliseconds kUnseenPause{200};
constexpr std::string_view kKeepalive = "30";  // seconds

json::object ByPid(int64_t pid) { return {{"process", json::object{{"pid", pid}}}}; }
json::object ByTag(std::string_view tag) { return {{"process", json::object{{"tag", tag}}}}; }

// SECURITY: the extension `tree` ends what the process started, too. Servers that do not know it
// ignore it, as proto3 JSON asks, and end the process alone.
Task<Status> KillTree(std::shared_ptr<Transport> transport, json::object message) {
  message["signal"] = "SIGNAL_SIGKILL";
  message["tree"] = true;
  CO_TRY(co_await CallEnvd(std::move(transport), "process.Process/SendSignal", std::move(message)));
  co_return Status();
}

// The same of a process that was asked for but whose start was not heard of: it may come up yet.
Task<Status> KillUnseen(std::shared_ptr<Transport> transport, std::string tag) {
  Status killed;
  for (int attempt = 0; attempt < kUnseenAttempts; ++attempt) {
    killed = co_await KillTree(transport, ByTag(tag));
    if (killed || killed.error().code() != Code::kNotFound) break;
    co_await SleepFor(kUnseenPause);
  }
  co_return killed;
}

// One output of a command, as it grows.
class Output {
 public:
  Output(Stream stream, const Command& how) : stream_(stream), how_(how) {}

  void Take(std::string_view bytes) { Add(decoder_.Take(bytes)); }
  void Finish() { Add(decoder_.Finish()); }

  std::string text;
  bool truncated = false;

 private:
  void Add(std::string_view piece) {
    if (piece.empty()) return;
    if (how_.on_output) how_.on_output(stream_, piece);
    std::string_view kept =
        truncated ? std::string_view() : CutUtf8(piece, how_.max_output - text.size());
    text += kept;
    truncated = truncated || kept.size() < piece.size();
  }

  Stream stream_;
  const Command& how_;
  Utf8Decoder decoder_;
};

// One command from the request to its end. Lives in the frame of Perform().
class Running {
 public:
  Running(std::shared_ptr<Transport> transport, Command command)
      : transport_(std::move(transport)), command_(std::move(command)) {}

  Task<Result<CommandResult>> Start() {
    auto request = Head("Start");
    request.headers.Set("Connect-Timeout-Ms", std::to_string(command_.timeout.count()));
    json::object process{{"cmd", command_.argv.front()},
                         {"args", json::array(command_.argv.begin() + 1, command_.argv.end())}};
    json::object env;
    for (const auto& [name, value] : command_.env) env[name] = value;
    process["envs"] = std::move(env);
    if (!command_.cwd.empty()) process["cwd"] = command_.cwd;
    json::object message{{"process", std::move(process)}, {"stdin", !command_.stdin_text.empty()}};
    message["tag"] = command_.tag;
    return Within(std::move(request), std::move(message));
  }

  Task<Result<CommandResult>> Connect(std::string tag) {
    return Within(Head("Connect"), {{"process", json::object{{"tag", std::move(tag)}}}});
  }

  // Ends what was started, if it may still run.
  Task<Status> Kill() {
    if (ended_ || !asked_) co_return Status();
    co_return co_await (pid_ ? KillTree(transport_, ByPid(*pid_))
                             : KillUnseen(transport_, command_.tag));
  }

 private:
  http::RequestHead Head(std::string_view method) const {
    auto head = EnvdHead(*transport_, "POST", fmt::format("/process.Process/{}", method),
                         "application/connect+json", command_.user);
    head.headers.Set("Keepalive-Ping-Interval", kKeepalive);
    return head;
  }

  // With our own deadline: envd may be unable to keep it, or not be the one who counts.
  Task<Result<CommandResult>> Within(http::RequestHead head, json::object message) {
    auto result = co_await WithDeadline(command_.timeout + kTimeoutGrace, "the command",
                                        Follow(std::move(head), std::move(message)));
    bool late = !result && result.error().code() == Code::kDeadlineExceeded;
    if (!late || !pid_) co_return result;
    // envd says it without the kill; one more is harmless.
    if (!ended_)
      (void)co_await WithDeadline(kKillTimeout, "ending a process",
                                  KillTree(transport_, ByPid(*pid_)));
    ended_ = true;
    result_.timed_out = true;
    result_.exit_code = 128 + SIGKILL;
    co_return Collect();
  }

  Task<Result<CommandResult>> Follow(http::RequestHead head, json::object message) {
    CO_TRY_ASSIGN(auto connection, co_await transport_->Connect());
    asked_ = true;
    CO_TRY_ASSIGN(
        ProcessStream stream,
        co_await ProcessStream::Open(std::move(connection), std::move(head), std::move(message)));
    CO_TRY_ASSIGN(auto first, co_await stream.Next());
    if (!first || first->kind != ProcessEvent::Kind::kStarted)
      co_return Fail(Code::kDataLoss, "the sandbox did not say that the command has started");
    pid_ = first->pid;
    if (command_.on_started) command_.on_started(*pid_);
    Status read;
    if (command_.stdin_text.empty()) {
      read = co_await ReadEvents(stream);
    } else {
      auto winner = co_await (ReadEvents(stream) || Feed());
      read = std::get<0>(std::move(winner));
    }
    CO_TRY(std::move(read));
    co_return Collect();
  }

  Task<Status> ReadEvents(ProcessStream& stream) {
    for (;;) {
      CO_TRY_ASSIGN(auto event, co_await stream.Next());
      if (!event) co_return Status();
      switch (event->kind) {
        case ProcessEvent::Kind::kStdout:
          stdout_.Take(event->data);
          break;
        case ProcessEvent::Kind::kStderr:
          stderr_.Take(event->data);
          break;
        case ProcessEvent::Kind::kEnded:
          ended_ = true;
          result_.exit_code = event->exit_code;
          break;
        case ProcessEvent::Kind::kStarted:
        case ProcessEvent::Kind::kPty:
        case ProcessEvent::Kind::kAlive:
          break;
      }
    }
  }

  // Never returns: the end of the input is not the end of the command, and a command that does not
  // read its input is none of our business.
  Task<void> Feed() {
    std::string_view rest = command_.stdin_text;
    while (!rest.empty()) {
      json::object message = ByPid(*pid_);
      message["input"] = json::object{{"stdin", Base64Encode(rest.substr(0, kInputChunk))}};
      auto sent = co_await CallEnvd(transport_, "process.Process/SendInput", std::move(message));
      if (!sent) break;
      rest.remove_prefix(std::min(rest.size(), kInputChunk));
    }
    (void)co_await CallEnvd(transport_, "process.Process/CloseStdin", ByPid(*pid_));
    for (;;) co_await SleepFor(std::chrono::hours(1));
  }

  CommandResult Collect() {
    stdout_.Finish();
    stderr_.Finish();
    result_.stdout_text = std::move(stdout_.text);
    result_.stderr_text = std::move(stderr_.text);
    result_.truncated = stdout_.truncated || stderr_.truncated;
    result_.duration = std::chrono::duration_cast<milliseconds>(Clock::now() - began_);
    return std::move(result_);
  }

  std::shared_ptr<Transport> transport_;
  const Command command_;
  const Clock::time_point began_ = Clock::now();
  Output stdout_{Stream::kStdout, command_}, stderr_{Stream::kStderr, command_};
  CommandResult result_;
  std::optional<int64_t> pid_;
  bool asked_ = false, ended_ = false;
};

Error Canceled() { return Error(Code::kCanceled, "the command was canceled"); }

// Runs in a coroutine of its own (see EnvdClient::Run), so that it can still act when canceled.
Task<Result<CommandResult>> Perform(std::shared_ptr<Transport> transport, Command command,
                                    std::optional<std::string> tag) {
  Running running(std::move(transport), std::move(command));
  std::optional<Result<CommandResult>> result;
  try {
    result.emplace(tag ? co_await running.Connect(*tag) : co_await running.Start());
  } catch (const boost::system::system_error& error) {
    // asio ends a canceled coroutine at its next wait this way.
    if (error.code() != asio::error::operation_aborted) throw;
    result.emplace(tl::unexpected(Canceled()));
  }
  bool canceled = !*result && (*result).error().code() == Code::kCanceled;
  auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() == asio::cancellation_type::none && !canceled) co_return std::move(*result);
  if (*result) co_return std::move(*result);
  // From here on nothing stops this any more but its own deadline.
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  (void)co_await WithDeadline(kKillTimeout, "ending a process", running.Kill());
  co_return tl::unexpected(Canceled());
}

Task<Result<CommandResult>> PerformAlone(std::shared_ptr<Transport> transport, Command command,
                                         std::optional<std::string> tag) {
  auto executor = co_await asio::this_coro::executor;
  co_return co_await asio::co_spawn(
      executor, Perform(std::move(transport), std::move(command), std::move(tag)),
      asio::use_awaitable);
}

}  // namespace

Task<Result<CommandResult>> EnvdClient::Run(Command command) {
  if (command.argv.empty() || command.argv.front().empty())
    co_return Fail(Code::kInvalidArgument, "there is no command to run");
  if (command.tag.empty()) command.tag = RandomId("caisson-", 20);
  co_return co_await PerformAlone(transport_, std::move(command), std::nullopt);
}

Task<Result<CommandResult>> EnvdClient::Follow(std::string tag, Command how) {
  how.stdin_text.clear();
  how.tag = tag;
  return PerformAlone(transport_, std::move(how), std::move(tag));
}

Task<Result<std::vector<ProcessInfo>>> EnvdClient::ListProcesses() {
  auto transport = transport_;
  CO_TRY_ASSIGN(json::object answer,
                co_await CallEnvd(std::move(transport), "process.Process/List", {}));
  std::vector<ProcessInfo> list;
  const json::value* processes = answer.if_contains("processes");
  if (!processes || !processes->is_array()) co_return list;
  for (const json::value& value : processes->get_array()) {
    const json::object* info = value.if_object();
    if (!info) continue;
    ProcessInfo process;
    if (const json::value* pid = info->if_contains("pid"); pid && pid->is_number())
      process.pid = pid->to_number<int64_t>();
    if (const json::value* tag = info->if_contains("tag"); tag && tag->is_string())
      process.tag = std::string(tag->get_string());
    const json::value* config = info->if_contains("config");
    if (const json::object* given = config ? config->if_object() : nullptr) {
      if (const json::value* cmd = given->if_contains("cmd"); cmd && cmd->is_string())
        process.argv.emplace_back(cmd->get_string());
      const json::value* args = given->if_contains("args");
      if (args && args->is_array())
        for (const json::value& arg : args->get_array())
          if (arg.is_string()) process.argv.emplace_back(arg.get_string());
    }
    list.push_back(std::move(process));
  }
  co_return list;
}

Task<Status> EnvdClient::Kill(int64_t pid) { return KillTree(transport_, ByPid(pid)); }

}  // namespace caisson::sdk

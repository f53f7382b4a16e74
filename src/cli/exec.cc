#include "cli/exec.h"

#include <unistd.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "base/encoding.h"
#include "sdk/process_stream.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;
using namespace asio::experimental::awaitable_operators;

constexpr size_t kInputChunk = 256 << 10;

json::object Selector(uint32_t pid) { return {{"pid", pid}}; }

class Execution {
 public:
  Execution(asio::any_io_executor executor, ApiClient& client, ExecInSandbox exec)
      : client_(client),
        exec_(std::move(exec)),
        started_(executor),
        signals_(executor, SIGINT, SIGTERM) {}

  Task<Result<int>> Run() {
    CO_TRY_ASSIGN(auto info, co_await client_.Call("GET", "/sandboxes/" + PercentEncode(exec_.id)));
    if (!info.body.is_object())
      co_return Fail(Code::kDataLoss, "the server's answer makes no sense");
    sandbox_ = info.body.as_object();
    CO_TRY_ASSIGN(auto request, co_await client_.OpenEnvd(sandbox_, "/process.Process/Start",
                                                          "application/connect+json", exec_.user));
    CO_TRY_ASSIGN(auto stream,
                  co_await sdk::ProcessStream::Open(std::move(request.connection),
                                                    std::move(request.head), StartMessage()));
    auto winner = co_await (Follow(stream) || Feed() || Interrupted());
    if (winner.index() == 0) co_return std::get<0>(std::move(winner));
    co_return 128 + SIGINT;
  }

 private:
  json::object StartMessage() const {
    json::object process{{"cmd", exec_.command.front()}};
    json::array args(exec_.command.begin() + 1, exec_.command.end());
    process["args"] = std::move(args);
    json::object env;
    for (const auto& [name, value] : exec_.env) env[name] = value;
    process["envs"] = std::move(env);
    if (!exec_.cwd.empty()) process["cwd"] = exec_.cwd;
    return {{"process", std::move(process)}, {"stdin", !isatty(STDIN_FILENO)}};
  }

  // Prints what the command prints, to its end.
  Task<Result<int>> Follow(sdk::ProcessStream& stream) {
    using Kind = sdk::ProcessEvent::Kind;
    int status = 0;
    for (;;) {
      CO_TRY_ASSIGN(auto event, co_await stream.Next());
      if (!event) co_return status;
      if (event->kind == Kind::kStdout) WriteAll(STDOUT_FILENO, event->data);
      if (event->kind == Kind::kStderr) WriteAll(STDERR_FILENO, event->data);
      if (event->kind == Kind::kEnded) status = event->exit_code;
      if (event->kind == Kind::kStarted) {
        pid_ = static_cast<uint32_t>(event->pid);
        started_.Notify();
      }
    }
  }

  // Passes our input on. Never returns: the end of the input is not the end of the command.
  Task<void> Feed() {
    while (!pid_) co_await started_.Wait(std::chrono::milliseconds(1000));
    bool more = !isatty(STDIN_FILENO);
    while (more) {
      auto data = co_await RunBlocking(input_, [] { return ReadInput(); });
      more = data && !data->empty();
      Status sent = more ? co_await SendInput(*data)
                         : co_await client_.CallEnvd(sandbox_, "/process.Process/CloseStdin",
                                                     {{"process", Selector(*pid_)}});
      if (!sent) break;  // it does not read any more
    }
    for (;;) co_await SleepFor(std::chrono::hours(1));
  }

  static Result<std::string> ReadInput() {
    std::string data(kInputChunk, '\0');
    ssize_t n;
    do {
      n = read(STDIN_FILENO, data.data(), data.size());
    } while (n < 0 && errno == EINTR);
    if (n < 0) return FailErrno("reading standard input");
    data.resize(static_cast<size_t>(n));
    return data;
  }

  Task<Status> SendInput(std::string data) {
    return client_.CallEnvd(
        sandbox_, "/process.Process/SendInput",
        {{"process", Selector(*pid_)}, {"input", {{"stdin", Base64Encode(data)}}}});
  }

  // Returns when the user has had enough and the command was told to end.
  Task<void> Interrupted() {
    auto [ec, number] = co_await signals_.async_wait(kAwait);
    if (!ec && pid_)
      (void)co_await client_.CallEnvd(sandbox_, "/process.Process/SendSignal",
                                      {{"process", Selector(*pid_)}, {"signal", "SIGNAL_SIGTERM"}});
  }

  ApiClient& client_;
  ExecInSandbox exec_;
  json::object sandbox_;
  std::optional<uint32_t> pid_;
  Condition started_;
  asio::signal_set signals_;  // from the beginning, so that none is missed
  // Reading a terminal, a file or a pipe blocks; it gets a thread of its own.
  asio::thread_pool input_{1};
};

}  // namespace

void WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // nobody reads our output; the command goes on
    data.remove_prefix(static_cast<size_t>(n));
  }
}

Task<Result<int>> Exec(ApiClient& client, ExecInSandbox exec) {
  // Left to the end of the process: its thread may be waiting for input for ever.
  auto* execution = new Execution(co_await asio::this_coro::executor, client, std::move(exec));
  co_return co_await execution->Run();
}

}  // namespace caisson::cli

#include "cli/exec.h"

#include <unistd.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstring>

#include "base/encoding.h"
#include "base/text.h"
#include "http/connect_rpc.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;
using namespace asio::experimental::awaitable_operators;

constexpr size_t kInputChunk = 256 << 10;
constexpr size_t kMaxEnvelope = 16 << 20;
constexpr size_t kEnvelopeHead = 5;
constexpr uint8_t kEndStream = 0x02;

json::object Selector(uint32_t pid) { return {{"pid", pid}}; }

// What the stream says at one moment.
struct Envelope {
  uint8_t flags = 0;
  json::object message;
};

// Cuts a body into envelopes.
class EnvelopeReader {
 public:
  explicit EnvelopeReader(http::ClientConnection& connection) : connection_(connection) {}

  Task<Result<Envelope>> Next() {
    CO_TRY(co_await Need(kEnvelopeHead));
    auto byte = [this](size_t i) { return static_cast<uint8_t>(buffer_[i]); };
    size_t size = size_t{byte(1)} << 24 | size_t{byte(2)} << 16 | size_t{byte(3)} << 8 | byte(4);
    if (size > kMaxEnvelope)
      co_return Fail(Code::kDataLoss, "the server sent something that is not a stream of events");
    CO_TRY(co_await Need(kEnvelopeHead + size));
    Envelope envelope{byte(0), {}};
    boost::system::error_code ec;
    json::value parsed = json::parse(buffer_.substr(kEnvelopeHead, size), ec);
    if (ec || !parsed.is_object())
      co_return Fail(Code::kDataLoss, "the server sent an event that is not JSON");
    envelope.message = std::move(parsed.as_object());
    buffer_.erase(0, kEnvelopeHead + size);
    co_return envelope;
  }

 private:
  Task<Status> Need(size_t size) {
    std::string more;
    while (buffer_.size() < size) {
      more.resize(kInputChunk);
      CO_TRY_ASSIGN(size_t n, co_await connection_.ReadBody(more));
      if (n == 0) co_return Fail(Code::kUnavailable, "the server ended the stream too early");
      buffer_.append(more, 0, n);
    }
    co_return Status();
  }

  http::ClientConnection& connection_;
  std::string buffer_;
};

void WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // nobody reads our output; the command goes on
    data.remove_prefix(static_cast<size_t>(n));
  }
}

// "signal: killed" -> 137
int StatusOfSignal(std::string_view text) {
  constexpr std::string_view kPrefix = "signal: ";
  if (text.starts_with(kPrefix))
    for (int n = 1; n < NSIG; ++n)
      if (EqualsIgnoreCase(text.substr(kPrefix.size()), strsignal(n))) return 128 + n;
  return 128;
}

int StatusOfEnd(const json::object& end) {
  int64_t code = 0;
  if (const auto* value = end.if_contains("exitCode"); value && value->is_int64())
    code = value->as_int64();
  if (code >= 0) return static_cast<int>(code & 0xff);
  const auto* error = end.if_contains("error");
  return StatusOfSignal(error && error->is_string() ? std::string_view(error->as_string()) : "");
}

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
    connection_ = std::move(request.connection);
    std::string body = http::Envelope(json::serialize(StartMessage()));
    CO_TRY(co_await connection_->SendHead(std::move(request.head), body.size(), body));
    CO_TRY_ASSIGN(auto head, co_await connection_->ReadHead());
    if (head.status != 200) co_return co_await Refused(head.status);
    auto winner = co_await (Follow() || Feed() || Interrupted());
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

  Task<Result<int>> Refused(unsigned status) {
    std::string text(4096, '\0');
    auto n = co_await connection_->ReadBody(text);
    text.resize(n.value_or(0));
    co_return Fail(Code::kUnknown, "the sandbox answered {}: {}", status, Trim(text));
  }

  // Prints what the command prints, to its end.
  Task<Result<int>> Follow() {
    EnvelopeReader reader(*connection_);
    std::optional<int> status;
    for (;;) {
      CO_TRY_ASSIGN(Envelope envelope, co_await reader.Next());
      if (envelope.flags & kEndStream) {
        const auto* error = envelope.message.if_contains("error");
        if (error && error->is_object()) {
          const auto* message = error->as_object().if_contains("message");
          co_return Fail(Code::kUnknown, "{}",
                         message && message->is_string() ? std::string(message->as_string())
                                                         : std::string("the command failed"));
        }
        if (!status) co_return Fail(Code::kUnavailable, "the command ended without a result");
        co_return *status;
      }
      const auto* event = envelope.message.if_contains("event");
      if (event && event->is_object()) Handle(event->as_object(), status);
    }
  }

  void Handle(const json::object& event, std::optional<int>& status) {
    if (const auto* start = event.if_contains("start"); start && start->is_object()) {
      if (const auto* pid = start->as_object().if_contains("pid"))
        pid_ = pid->to_number<uint32_t>();
      started_.Notify();
    } else if (const auto* data = event.if_contains("data"); data && data->is_object()) {
      Print(data->as_object(), "stdout", STDOUT_FILENO);
      Print(data->as_object(), "stderr", STDERR_FILENO);
    } else if (const auto* end = event.if_contains("end"); end && end->is_object()) {
      status = StatusOfEnd(end->as_object());
    }
  }

  static void Print(const json::object& data, std::string_view name, int fd) {
    if (const auto* text = data.if_contains(name); text && text->is_string())
      if (auto bytes = Base64Decode(std::string_view(text->as_string()))) WriteAll(fd, *bytes);
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
  std::unique_ptr<http::ClientConnection> connection_;
  std::optional<uint32_t> pid_;
  Condition started_;
  asio::signal_set signals_;  // from the beginning, so that none is missed
  // Reading a terminal, a file or a pipe blocks; it gets a thread of its own.
  asio::thread_pool input_{1};
};

}  // namespace

Task<Result<int>> Exec(ApiClient& client, ExecInSandbox exec) {
  // Left to the end of the process: its thread may be waiting for input for ever.
  auto* execution = new Execution(co_await asio::this_coro::executor, client, std::move(exec));
  co_return co_await execution->Run();
}

}  // namespace caisson::cli

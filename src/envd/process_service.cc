#include "envd/process_service.h"

#include <signal.h>

#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/json/array.hpp>

#include "base/text.h"
#include "envd/auth.h"
#include "envd/client_stream.h"
#include "envd/proto_json.h"

namespace caisson::envd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::pair<std::string_view, int>, 3> kSignals = {{
    {"SIGNAL_UNSPECIFIED", 0},
    {"SIGNAL_SIGTERM", SIGTERM},
    {"SIGNAL_SIGKILL", SIGKILL},
}};

// Input that a process does not read keeps its request open at most this long.
constexpr std::chrono::minutes kMaxInputWait{10};

Result<std::optional<PtySize>> ReadPty(const json::object& request) {
  TRY_ASSIGN(const json::object* pty, Fields(request).Message("pty"));
  if (pty == nullptr) return std::nullopt;
  PtySize size;
  TRY_ASSIGN(const json::object* message, Fields(*pty).Message("size"));
  if (message != nullptr) {
    TRY_ASSIGN(size.cols, Fields(*message).Uint32("cols"));
    TRY_ASSIGN(size.rows, Fields(*message).Uint32("rows"));
  }
  return size;
}

Result<StartRequest> ReadStart(const json::object& request) {
  Fields fields(request);
  StartRequest start;
  TRY_ASSIGN(const json::object* process, fields.Message("process"));
  if (process != nullptr) {
    Fields config(*process);
    TRY_ASSIGN(start.config.cmd, config.String("cmd"));
    TRY_ASSIGN(start.config.args, config.Strings("args"));
    TRY_ASSIGN(start.config.envs, config.StringMap("envs"));
    if (config.Has("cwd")) {
      TRY_ASSIGN(start.config.cwd, config.String("cwd"));
    }
  }
  TRY_ASSIGN(start.pty, ReadPty(request));
  if (fields.Has("tag")) {
    TRY_ASSIGN(start.tag, fields.String("tag"));
  }
  if (fields.Has("stdin")) {
    TRY_ASSIGN(start.use_stdin, fields.Bool("stdin"));
  }
  return start;
}

struct InputMessage {
  Process::Input kind = Process::Input::kStdin;
  std::string data;
};

Result<InputMessage> ReadInput(const json::object& message) {
  TRY_ASSIGN(const json::object* input, Fields(message).Message("input"));
  static const json::object kNone;
  Fields fields(input == nullptr ? kNone : *input);
  TRY_ASSIGN(std::string_view kind, fields.OneOf({"stdin", "pty"}));
  if (kind.empty()) return Fail(Code::kUnimplemented, "the input is neither stdin nor pty");
  InputMessage out;
  out.kind = kind == "pty" ? Process::Input::kPty : Process::Input::kStdin;
  TRY_ASSIGN(out.data, fields.Bytes(kind));
  return out;
}

// Sends the events of a process until its end. The stream that started a process with a timeout
// learns of the timeout, not of the kill that followed from it.
Task<Status> Follow(http::MessageStream& stream, std::shared_ptr<Process> process,
                    std::unique_ptr<Subscriber> subscriber, bool started_here) {
  const http::RequestHead& head = stream.exchange().request();
  auto keepalive = KeepaliveInterval(head);
  // The one who started it follows the process's own deadline, which does not count frozen time.
  auto deadline = started_here ? Clock::time_point::max() : StreamDeadline(head);
  Event start = StartEvent(process->pid());
  CO_TRY(co_await stream.SendRaw(*start));
  for (;;) {
    Event event = co_await subscriber->Next(std::min(Clock::now() + keepalive, deadline));
    bool ended = event && event == process->end_event();
    if (Clock::now() >= deadline || (started_here && process->timed_out()))
      co_return Fail(Code::kDeadlineExceeded, "the timeout of the request is over");
    if (!event) event = KeepaliveEvent();
    CO_TRY(co_await stream.SendRaw(*event));
    if (ended) co_return Status();
  }
}

// A client that goes away must not keep its place at the process until the next event.
Task<Status> FollowWhileConnected(http::MessageStream& stream, std::shared_ptr<Process> process,
                                  std::unique_ptr<Subscriber> subscriber, bool started_here) {
  using namespace asio::experimental::awaitable_operators;
  auto winner = co_await (Follow(stream, std::move(process), std::move(subscriber), started_here) ||
                          stream.exchange().ClientGone());
  if (winner.index() == 0) co_return std::get<0>(std::move(winner));
  co_return Fail(Code::kCanceled, "the client is gone");
}

}  // namespace

std::chrono::seconds KeepaliveInterval(const http::RequestHead& request) {
  constexpr std::chrono::seconds kDefault{90};
  auto value = ParseInt<int64_t>(Trim(request.headers.Value("Keepalive-Ping-Interval")));
  return value && *value > 0 && *value < 86'400 ? std::chrono::seconds(*value) : kDefault;
}

Clock::time_point StreamDeadline(const http::RequestHead& request) {
  auto timeout = http::ConnectTimeout(request);
  if (!timeout || timeout->count() == 0) return Clock::time_point::max();
  return Clock::now() + *timeout;
}

Result<Selector> ReadSelector(const json::object& request) {
  TRY_ASSIGN(const json::object* process, Fields(request).Message("process"));
  static const json::object kNone;
  Fields fields(process == nullptr ? kNone : *process);
  TRY_ASSIGN(std::string_view kind, fields.OneOf({"pid", "tag"}));
  if (kind == "pid") {
    TRY_ASSIGN(uint32_t pid, fields.Uint32("pid"));
    return Selector(static_cast<pid_t>(pid));
  }
  if (kind == "tag") {
    TRY_ASSIGN(std::string tag, fields.String("tag"));
    return Selector(std::move(tag));
  }
  return Fail(Code::kUnimplemented, "the request selects no process: set pid or tag");
}

void ProcessService::Register(http::Router& router) {
  auto path = [](std::string_view method) { return "/process.Process/" + std::string(method); };
  auto stream = [&](std::string_view name, http::StreamMethod method) {
    auto limit = static_cast<size_t>(settings_.limits.max_request_bytes);
    router.Add("POST", path(name), [method, limit](http::Exchange& exchange, http::PathParams) {
      return http::ServeStream(exchange, method, limit);
    });
  };
  auto unary = [&](std::string_view name, http::UnaryMethod method, int64_t limit) {
    router.Add("POST", path(name), [method, limit](http::Exchange& exchange, http::PathParams) {
      return http::ServeUnary(exchange, method, static_cast<size_t>(limit));
    });
  };
  using std::placeholders::_1, std::placeholders::_2;
  int64_t small = settings_.limits.max_request_bytes;
  stream("Start", std::bind(&ProcessService::Start, this, _1, _2));
  stream("Connect", std::bind(&ProcessService::Connect, this, _1, _2));
  unary("List", std::bind(&ProcessService::List, this, _1, _2), small);
  unary("Update", std::bind(&ProcessService::Update, this, _1, _2), small);
  unary("SendInput", std::bind(&ProcessService::SendInput, this, _1, _2),
        settings_.limits.max_input_bytes);
  unary("SendSignal", std::bind(&ProcessService::SendSignal, this, _1, _2), small);
  unary("CloseStdin", std::bind(&ProcessService::CloseStdin, this, _1, _2), small);
  router.Add("POST", path("StreamInput"),
             [this](http::Exchange& exchange, http::PathParams) { return StreamInput(exchange); });
}

Task<Status> ProcessService::Start(http::MessageStream& stream, Json request) {
  const http::RequestHead& head = stream.exchange().request();
  CO_TRY_ASSIGN(StartRequest start, ReadStart(request));
  CO_TRY_ASSIGN(start.user, RpcUser(head, settings_));
  start.timeout = http::ConnectTimeout(head);
  if (start.timeout && start.timeout->count() == 0) start.timeout.reset();
  CO_TRY_ASSIGN(ProcessTable::Started started, co_await table_.Start(std::move(start)));
  co_return co_await FollowWhileConnected(stream, std::move(started.process),
                                          std::move(started.subscriber), true);
}

Task<Status> ProcessService::Connect(http::MessageStream& stream, Json request) {
  CO_TRY_ASSIGN(Selector selector, ReadSelector(request));
  auto found = table_.Find(selector);
  if (const ProcessTable::Ended* ended = found ? nullptr : table_.FindEnded(selector)) {
    Event start = StartEvent(ended->pid), end = ended->end_event;
    CO_TRY(co_await stream.SendRaw(*start));
    co_return co_await stream.SendRaw(*end);
  }
  CO_TRY_ASSIGN(std::shared_ptr<Process> process, std::move(found));
  OutputHub& output = process->output();
  if (output.subscribers() >= static_cast<size_t>(settings_.limits.max_subscribers))
    co_return Fail(Code::kResourceExhausted, "process {} already has {} followers", process->pid(),
                   output.subscribers());
  auto subscriber = output.Subscribe();
  co_return co_await FollowWhileConnected(stream, std::move(process), std::move(subscriber), false);
}

Task<Result<json::object>> ProcessService::List(http::Exchange&, Json) {
  json::array processes;
  for (const auto& process : table_.List()) {
    json::object info;
    info["config"] = ToJson(process->config());
    info["pid"] = process->pid();
    if (process->tag()) info["tag"] = *process->tag();
    processes.push_back(std::move(info));
  }
  json::object out;
  if (!processes.empty()) out["processes"] = std::move(processes);
  co_return out;
}

Task<Result<json::object>> ProcessService::Update(http::Exchange&, Json request) {
  CO_TRY_ASSIGN(Selector selector, ReadSelector(request));
  CO_TRY_ASSIGN(std::shared_ptr<Process> process, table_.Find(selector));
  CO_TRY_ASSIGN(std::optional<PtySize> size, ReadPty(request));
  if (size) CO_TRY(process->Resize(*size));
  co_return json::object();
}

Task<Result<json::object>> ProcessService::SendInput(http::Exchange& exchange, Json request) {
  CO_TRY_ASSIGN(Selector selector, ReadSelector(request));
  CO_TRY_ASSIGN(std::shared_ptr<Process> process, table_.Find(selector));
  CO_TRY_ASSIGN(InputMessage input, ReadInput(request));
  request.clear();  // it holds the data once more, and the process may take its time
  auto timeout = http::ConnectTimeout(exchange.request());
  if (!timeout || timeout->count() == 0) timeout = kMaxInputWait;
  CO_TRY(co_await WithDeadline(*timeout, "writing the input",
                               process->Write(input.kind, std::move(input.data))));
  co_return json::object();
}

Task<Result<json::object>> ProcessService::SendSignal(http::Exchange&, Json request) {
  CO_TRY_ASSIGN(Selector selector, ReadSelector(request));
  CO_TRY_ASSIGN(std::shared_ptr<Process> process, table_.Find(selector));
  CO_TRY_ASSIGN(int signal, Fields(request).Enum("signal", kSignals));
  if (signal != SIGTERM && signal != SIGKILL)
    co_return Fail(Code::kUnimplemented, "invalid signal: {}", signal);
  // Ours: with "tree" everything that the process started ends with it.
  CO_TRY_ASSIGN(bool tree, Fields(request).Bool("tree"));
  if (tree && signal == SIGKILL)
    process->Kill();
  else
    CO_TRY(process->Signal(signal));
  co_return json::object();
}

Task<Result<json::object>> ProcessService::CloseStdin(http::Exchange& exchange, Json request) {
  CO_TRY_ASSIGN(Selector selector, ReadSelector(request));
  CO_TRY_ASSIGN(std::shared_ptr<Process> process, table_.Find(selector));
  auto timeout = http::ConnectTimeout(exchange.request());
  if (!timeout || timeout->count() == 0) timeout = kMaxInputWait;
  CO_TRY(co_await WithDeadline(*timeout, "closing stdin", process->CloseStdin()));
  co_return json::object();
}

Task<void> ProcessService::StreamInput(http::Exchange& exchange) {
  Status result = Fail(Code::kDeadlineExceeded, "the timeout of the request is over");
  auto timeout = http::ConnectTimeout(exchange.request());
  if (timeout && timeout->count() > 0) {
    result = co_await WithDeadline(*timeout, "StreamInput", ReadInputs(exchange));
  } else {
    result = co_await ReadInputs(exchange);
  }
  co_await AnswerClientStream(exchange, result);
}

Task<Status> ProcessService::ReadInputs(http::Exchange& exchange) {
  auto limit = static_cast<size_t>(settings_.limits.max_input_bytes);
  std::shared_ptr<Process> process;
  for (;;) {
    CO_TRY_ASSIGN(std::optional<json::object> message, co_await ReadClientMessage(exchange, limit));
    if (!message) co_return Status();
    Fields fields(*message);
    CO_TRY_ASSIGN(std::string_view kind, fields.OneOf({"start", "data", "keepalive"}));
    if (kind == "keepalive") continue;
    if (kind.empty()) co_return Fail(Code::kUnimplemented, "the message is of no known kind");
    CO_TRY_ASSIGN(const json::object* body, fields.Message(kind));
    if (kind == "start") {
      CO_TRY_ASSIGN(Selector selector, ReadSelector(*body));
      CO_TRY_ASSIGN(process, table_.Find(selector));
    } else {
      if (!process)
        co_return Fail(Code::kInvalidArgument, "the first message of StreamInput must be start");
      CO_TRY_ASSIGN(InputMessage input, ReadInput(*body));
      CO_TRY(co_await process->Write(input.kind, std::move(input.data)));
    }
  }
}

}  // namespace caisson::envd

// What is done inside a sandbox: commands, files.
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/json.hpp>
#include <deque>

#include "api/sandbox_routes.h"
#include "api/sse_stream.h"
#include "base/text.h"

namespace caisson::api {
namespace {

using namespace asio::experimental::awaitable_operators;

constexpr size_t kChunk = 64 << 10;
// Output that a slow client has not taken yet; more is left out, and it is told how much.
constexpr size_t kMaxWaiting = 4 << 20;

constexpr std::string_view kCommand = R"({
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "description": "for a shell: bash -lc"},
    "argv": {"type": "array", "minItems": 1, "items": {"type": "string"},
             "description": "a program and its arguments, without a shell"},
    "cwd": {"type": "string"},
    "env": {"type": "object", "additionalProperties": {"type": "string"}},
    "user": {"type": "string", "minLength": 1, "maxLength": 64},
    "stdin": {"type": "string"},
    "timeout_s": {"type": "number", "minimum": 0.001, "maximum": 86400}}})";
constexpr std::string_view kCommandResult = R"({
  "type": "object",
  "required": ["operation_id", "exit_code", "stdout", "stderr", "duration_ms", "timed_out",
               "truncated"],
  "properties": {
    "operation_id": {"type": "string"}, "exit_code": {"type": "integer"},
    "stdout": {"type": "string"}, "stderr": {"type": "string"},
    "duration_ms": {"type": "integer"},
    "timed_out": {"type": "boolean", "description": "it was ended; only in an answer 504"},
    "truncated": {"type": "boolean", "description": "there was more output than is shown"}}})";
constexpr std::string_view kCommandTimeout = R"({
  "type": "object", "required": ["error"],
  "properties": {
    "error": {"type": "object", "required": ["code", "message", "debug_id", "retryable"],
      "properties": {"code": {"type": "string"}, "message": {"type": "string"},
        "debug_id": {"type": "string"}, "retryable": {"type": "boolean"}}},
    "result": {"$ref": "#/components/schemas/CommandResult"}}})";
constexpr std::string_view kFileList = R"({
  "type": "object", "required": ["files"],
  "properties": {"files": {"type": "array", "items": {
    "type": "object", "required": ["name", "path", "type", "size"],
    "properties": {
      "name": {"type": "string"}, "path": {"type": "string"},
      "type": {"enum": ["file", "directory"]}, "size": {"type": "integer"},
      "mode": {"type": "string"},
      "modified_at": {"type": "string", "format": "date-time"}}}}}})";

json::object EncodeResult(const work::Sandboxes::Executed& done) {
  return {{"operation_id", done.operation_id},           {"exit_code", done.result.exit_code},
          {"stdout", done.result.stdout_text},           {"stderr", done.result.stderr_text},
          {"duration_ms", done.result.duration.count()}, {"timed_out", done.result.timed_out},
          {"truncated", done.result.truncated}};
}

json::object BodyOf(const http::Response& response) {
  boost::system::error_code ec;
  json::value body = json::parse(response.body, ec);
  return ec || !body.is_object() ? json::object() : std::move(body.get_object());
}

// The error, and what the command had printed until then.
http::Response TimedOut(const work::Sandboxes::Executed& done, std::chrono::milliseconds timeout,
                        const Call& call) {
  Error error(Code::kDeadlineExceeded,
              fmt::format("command_timeout: the command took longer than {} ms and was ended",
                          timeout.count()));
  http::Response response = RefusedSandbox(error, call);
  json::object body = BodyOf(response);
  body["result"] = EncodeResult(done);
  response.body = json::serialize(body);
  return response;
}

Result<work::Sandboxes::Execution> ReadCommand(const Call& call, const Config& config) {
  const json::object& body = call.body;
  work::Sandboxes::Execution execution{.role = call.who.role};
  sdk::Command& command = execution.command;
  auto text = [&](std::string_view name) {
    const json::value* value = body.if_contains(name);
    return value && value->is_string() ? std::string(value->get_string()) : std::string();
  };
  if (body.contains("command") == body.contains("argv"))
    return Fail(Code::kInvalidArgument, "say either `command` or `argv`");
  if (body.contains("command"))
    command.argv = {"bash", "-lc", text("command")};
  else
    for (const json::value& arg : body.at("argv").as_array())
      command.argv.emplace_back(arg.as_string());
  command.cwd = text("cwd");
  command.stdin_text = text("stdin");
  if (body.contains("user")) command.user = text("user");
  if (const json::value* env = body.if_contains("env"))
    for (const auto& [name, value] : env->as_object())
      command.env[name] = std::string(value.as_string());
  command.timeout = std::chrono::seconds(config.command_timeout_s);
  if (const json::value* seconds = body.if_contains("timeout_s"))
    command.timeout =
        std::chrono::milliseconds(static_cast<int64_t>(seconds->to_number<double>() * 1000));
  if (command.timeout > std::chrono::seconds(config.command_timeout_s))
    return Fail(Code::kInvalidArgument,
                "timeout_too_long: a command may run {} s at most on this server",
                config.command_timeout_s);
  command.max_output = static_cast<size_t>(config.command_output_bytes);
  return execution;
}

// Output between the command, which does not wait, and the client, which may be slow.
struct Live {
  explicit Live(asio::any_io_executor executor) : changed(std::move(executor)) {}
  Condition changed;
  std::deque<std::string> waiting;
  size_t bytes = 0;
  int64_t missed = 0;
  bool done = false;

  void Push(std::string frame) {
    if (bytes + frame.size() > kMaxWaiting) {
      ++missed;
      return;
    }
    if (missed > 0) waiting.push_back(Sse("overflow", {{"missed", std::exchange(missed, 0)}}));
    bytes += frame.size();
    waiting.push_back(std::move(frame));
    changed.Notify();
  }
};

Task<void> RunInto(Live& live, work::Sandboxes& sandboxes, std::string owner, std::string id,
                   work::Sandboxes::Execution execution, Call& call) {
  std::chrono::milliseconds timeout = execution.command.timeout;
  execution.command.on_output = [&live](sdk::Stream stream, std::string_view piece) {
    live.Push(Sse("output", {{"stream", stream == sdk::Stream::kStdout ? "stdout" : "stderr"},
                             {"output", piece}}));
  };
  auto done = co_await sandboxes.Execute(std::move(owner), std::move(id), std::move(execution));
  // The end is always told.
  live.bytes = 0;
  if (!done)
    live.Push(Sse("error", BodyOf(RefusedSandbox(done.error(), call))));
  else if (done->result.timed_out)
    live.Push(Sse("error", BodyOf(TimedOut(*done, timeout, call))));
  else
    live.Push(Sse("result", EncodeResult(*done)));
  live.done = true;
  live.changed.Notify();
}

Task<void> WriteFrom(Live& live, http::Exchange& exchange, std::chrono::milliseconds heartbeat) {
  for (;;) {
    while (!live.waiting.empty()) {
      std::string frame = std::move(live.waiting.front());
      live.waiting.pop_front();
      live.bytes -= std::min(live.bytes, frame.size());
      if (!co_await exchange.Write(frame)) co_return;
    }
    if (live.done) break;
    bool woken = co_await live.changed.Wait(heartbeat);
    if (!woken && !co_await exchange.Write(": alive\n\n")) co_return;
  }
  (void)co_await exchange.FinishStream();
}

// The body of a request, piece by piece.
Task<Result<std::string>> NextOf(http::Exchange& exchange) {
  std::string piece(kChunk, '\0');
  CO_TRY_ASSIGN(size_t size, co_await exchange.Read(piece));
  piece.resize(size);
  co_return piece;
}

// The first call, without a byte, begins the answer.
Task<Status> TakeFor(Call& call, std::string_view piece) {
  if (!piece.empty()) co_return co_await call.exchange.Write(piece);
  http::ResponseHead head;
  head.headers = call.headers;
  head.headers.Set("Content-Type", "application/octet-stream");
  // SECURITY: what is in a sandbox is never shown as a page of this server.
  head.headers.Set("Content-Disposition", "attachment");
  head.headers.Set("X-Content-Type-Options", "nosniff");
  co_return co_await call.exchange.StartStream(std::move(head), std::nullopt);
}

std::string PathOf(const Call& call) { return std::string(call.query.Get("path").value_or("")); }

Error NoPath() { return Error(Code::kInvalidArgument, "the query has no path"); }

}  // namespace

Answer SandboxRoutes::Execute(Call& call) {
  auto execution = ReadCommand(call, config_);
  if (!execution) co_return RefusedSandbox(execution.error(), call);
  if (!call.inner && call.exchange.request().headers.Value("Accept").find("text/event-stream") !=
                         std::string_view::npos)
    co_return co_await ExecuteLive(call, std::move(*execution));
  std::chrono::milliseconds timeout = execution->command.timeout;
  // A client that goes away ends its command.
  auto winner =
      co_await (sandboxes_.Execute(call.who.user_id, call.params.at("id"), std::move(*execution)) ||
                call.exchange.ClientGone());
  if (winner.index() == 1) co_return Fail(Code::kCanceled, "the client is gone");
  auto done = std::get<0>(std::move(winner));
  if (!done) co_return RefusedSandbox(done.error(), call);
  if (done->result.timed_out) co_return TimedOut(*done, timeout, call);
  co_return http::Response::Json(200, EncodeResult(*done));
}

Answer SandboxRoutes::ExecuteLive(Call& call, work::Sandboxes::Execution execution) {
  // What is wrong from the start has a status of its own.
  auto connection = co_await sandboxes_.Connect(call.who.user_id, call.params.at("id"));
  if (!connection) co_return RefusedSandbox(connection.error(), call);
  http::ResponseHead head;
  head.headers = call.headers;
  head.headers.Set("Content-Type", "text/event-stream");
  head.headers.Set("Cache-Control", "no-store");
  CO_TRY(co_await call.exchange.StartStream(std::move(head), std::nullopt));
  Live live(co_await asio::this_coro::executor);
  co_await ((RunInto(live, sandboxes_, call.who.user_id, call.params.at("id"), std::move(execution),
                     call) &&
             WriteFrom(live, call.exchange, std::chrono::milliseconds(config_.sse_heartbeat_ms))) ||
            call.exchange.ClientGone());
  co_return http::Response::Empty(200);
}

Answer SandboxRoutes::Upload(Call& call) {
  std::string path = PathOf(call);
  if (path.empty()) co_return RefusedSandbox(NoPath(), call);
  if (call.exchange.ContentLength().value_or(0) > static_cast<uint64_t>(config_.file_max_bytes))
    co_return RefusedSandbox(
        Error(Code::kOutOfRange, fmt::format("file_too_large: a file may have {} bytes at most",
                                             config_.file_max_bytes)),
        call);
  Status sent = co_await sandboxes_.Upload(call.who.user_id, call.params.at("id"), path,
                                           [&call] { return NextOf(call.exchange); });
  if (!sent) co_return RefusedSandbox(sent.error(), call);
  co_return http::Response::Empty(204);
}

Answer SandboxRoutes::Download(Call& call) {
  std::string path = PathOf(call);
  if (path.empty()) co_return RefusedSandbox(NoPath(), call);
  Status got = co_await sandboxes_.Download(
      call.who.user_id, call.params.at("id"), path,
      [&call](std::string_view piece) { return TakeFor(call, piece); });
  if (!got && !call.exchange.answered()) co_return RefusedSandbox(got.error(), call);
  // The client must see that the file is not complete.
  if (!got)
    call.exchange.Abort();
  else
    (void)co_await call.exchange.FinishStream();
  co_return http::Response::Empty(200);
}

Answer SandboxRoutes::ListFiles(Call& call) {
  std::string path = PathOf(call);
  auto depth = ParseInt<int>(call.query.Get("depth").value_or("1")).value_or(1);
  auto files = co_await sandboxes_.ListFiles(call.who.user_id, call.params.at("id"),
                                             path.empty() ? "." : path, depth);
  if (!files) co_return RefusedSandbox(files.error(), call);
  json::array list;
  for (const sdk::FileInfo& file : *files) {
    json::object entry{{"name", file.name},
                       {"path", file.path},
                       {"type", file.is_directory ? "directory" : "file"},
                       {"size", file.size},
                       {"mode", file.mode}};
    if (file.modified_at) entry["modified_at"] = FormatTime(*file.modified_at);
    list.push_back(std::move(entry));
  }
  co_return http::Response::Json(200, json::object{{"files", std::move(list)}});
}

void SandboxRoutes::AddCommands(Frame& frame) {
  frame.AddSchema("Command", kCommand);
  frame.AddSchema("CommandResult", kCommandResult);
  frame.AddSchema("CommandTimeout", kCommandTimeout);
  frame.AddSchema("FileList", kFileList);
  const Parameter path{.name = "path", .description = "absolute, or from the user's home"};
  frame.Add({.method = "POST",
             .pattern = "/api/v1/sandboxes/{id}/execute",
             .tag = "sandboxes",
             .id = "executeInSandbox",
             .summary = "Run a command; with Accept: text/event-stream its output comes live",
             .request = "Command",
             .lasts = true,
             .responses = {{200, "CommandResult"},
                           {409, "Error"},
                           {422, "Error"},
                           {503, "Error"},
                           {504, "CommandTimeout"}},
             .handler = Bind(&SandboxRoutes::Execute)});
  frame.Add({.method = "PUT",
             .pattern = "/api/v1/sandboxes/{id}/files",
             .tag = "sandboxes",
             .id = "uploadFile",
             .summary = "Write the body into a file; its directories are made",
             .parameters = {path},
             .reads_body = true,
             .responses = {{204, ""}, {409, "Error"}, {413, "Error"}, {503, "Error"}},
             .handler = Bind(&SandboxRoutes::Upload)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/sandboxes/{id}/files",
             .tag = "sandboxes",
             .id = "downloadFile",
             .summary = "The content of a file",
             .access = Access::kViewer,
             .parameters = {path},
             .responses = {{200, ""}, {409, "Error"}, {413, "Error"}, {503, "Error"}},
             .stream = "application/octet-stream",
             .handler = Bind(&SandboxRoutes::Download)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/sandboxes/{id}/files/list",
             .tag = "sandboxes",
             .id = "listFiles",
             .summary = "What is in a directory",
             .access = Access::kViewer,
             .parameters = {path, {.name = "depth", .type = "integer", .min = 1, .max = 20}},
             .responses = {{200, "FileList"}, {409, "Error"}, {503, "Error"}},
             .handler = Bind(&SandboxRoutes::ListFiles)});
}

}  // namespace caisson::api

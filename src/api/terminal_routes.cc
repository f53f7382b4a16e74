#include "api/terminal_routes.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/json.hpp>

#include "api/fields.h"
#include "api/sandbox_routes.h"
#include "base/text.h"
#include "http/web_socket.h"

namespace caisson::api {
namespace {

using namespace asio::experimental::awaitable_operators;
using Kind = http::WebSocketMessage::Kind;
using terminal::Ending;

constexpr size_t kMaxMessage = 1 << 20;
constexpr size_t kMaxInput = 1 << 20;     // typed and not taken by the shell yet
constexpr size_t kInputPiece = 64 << 10;  // of one call into the sandbox
constexpr size_t kSlack = 1 << 20;        // one more piece of output than the queue may hold
constexpr int64_t kMaxSide = 1'000;       // columns, rows

constexpr std::string_view kTerminal = R"({
  "type": "object", "required": ["id", "pid", "attached", "created_at"],
  "properties": {
    "id": {"type": "string"},
    "pid": {"type": "integer", "description": "of the shell, inside the sandbox"},
    "attached": {"type": "integer", "description": "how many look at it"},
    "created_at": {"type": "string", "format": "date-time"}}})";
constexpr std::string_view kTerminalList = R"({
  "type": "object", "required": ["terminals", "total"],
  "properties": {
    "terminals": {"type": "array", "items": {"$ref": "#/components/schemas/Terminal"}},
    "total": {"type": "integer"}}})";

// SECURITY: browsers let any page open a WebSocket, and send the cookies along. Whose page it is
// only the Origin tells. Proxies may have taken the TLS off, so the scheme does not count.
bool IsOwnPage(const http::RequestHead& request) {
  std::string_view origin = request.headers.Value("Origin");
  for (std::string_view scheme : {"https://", "http://"})
    if (origin.starts_with(scheme))
      return EqualsIgnoreCase(origin.substr(scheme.size()), request.headers.Value("Host"));
  return false;
}

bool CameByCookies(const Call& call) {
  return !call.who.login_id.empty() && !call.exchange.request().headers.Has("Authorization");
}

http::Response NoWebSocket(const Call& call, std::string why) {
  http::Response response =
      ErrorResponse(Refusal{426, "upgrade_required", std::move(why)}, call.exchange.request_id());
  response.headers.Set("Upgrade", "websocket");
  response.headers.Set("Sec-WebSocket-Version", "13");
  return response;
}

// A viewer behind a WebSocket.
class Screen final : public terminal::Viewer {
 public:
  explicit Screen(http::WebSocket& socket) : socket_(socket) {}

  void Tell(const json::object& message) {
    (void)socket_.Send(Kind::kText, json::serialize(message));
  }
  void Show(std::string_view output) override {
    // Something would be missing from now on.
    if (socket_.open() && !socket_.Send(Kind::kBinary, output)) socket_.Abort();
  }
  void End(const Ending& ending) override {
    if (ending.kind == Ending::Kind::kSlow) return socket_.Abort();
    if (ending.kind == Ending::Kind::kExit) {
      Tell({{"type", "exit"}, {"exit_code", ending.exit_code}});
      return socket_.Close(http::CloseCode::kNormal, "");
    }
    Tell({{"type", "error"}, {"message", ToUtf8(ending.message)}});
    bool stopping = ending.kind == Ending::Kind::kStopping;
    socket_.Close(stopping ? http::CloseCode::kGoingAway : http::CloseCode::kFailed, "");
  }
  size_t waiting() const override { return socket_.waiting(); }

 private:
  http::WebSocket& socket_;
};

// What is typed, between the client and a shell that takes its time.
class Keyboard {
 public:
  explicit Keyboard(asio::any_io_executor executor) : changed_(std::move(executor)) {}

  Task<void> Type(std::string bytes) {
    while (typed_.size() > kMaxInput) co_await changed_.Wait(std::chrono::seconds(1));
    typed_ += bytes;
    changed_.Notify();
  }
  // Never returns.
  Task<void> Feed(terminal::Seat& seat) {
    for (;;) {
      while (typed_.empty()) co_await changed_.Wait(std::chrono::seconds(60));
      std::string piece = typed_.substr(0, kInputPiece);
      typed_.erase(0, piece.size());
      changed_.Notify();
      // A shell that has ended says so itself.
      (void)co_await seat.Send(std::move(piece));
    }
  }

 private:
  std::string typed_;
  Condition changed_;
};

std::optional<sdk::PtySize> ReadResize(std::string_view text) {
  boost::system::error_code ec;
  json::value value = json::parse(text, ec);
  const json::object* message = ec ? nullptr : value.if_object();
  if (!message || !message->if_contains("type") || message->at("type") != "resize")
    return std::nullopt;
  auto side = [&](std::string_view name) {
    const json::value* number = message->if_contains(name);
    int64_t size = number && number->is_int64() ? number->get_int64() : 0;
    return size > kMaxSide ? 0 : size;
  };
  sdk::PtySize size{side("cols"), side("rows")};
  if (size.cols < 1 || size.rows < 1) return std::nullopt;
  return size;
}

Task<void> Listen(http::WebSocket& socket, Screen& screen, Keyboard& keyboard,
                  terminal::Seat& seat) {
  while (auto message = co_await socket.Read()) {
    if (message->kind == Kind::kBinary) {
      co_await keyboard.Type(std::move(message->data));
    } else if (auto size = ReadResize(message->data)) {
      (void)co_await seat.Resize(*size);
    } else {
      screen.Tell({{"type", "error"},
                   {"message", R"(a text must be {"type":"resize","cols":80,"rows":24})"}});
    }
  }
}

Task<void> Converse(http::WebSocket& socket, terminal::Seat& seat) {
  Screen screen(socket);
  Keyboard keyboard(co_await asio::this_coro::executor);
  socket.OnDrained([&seat] { seat.Drained(); });
  screen.Tell({{"type", "ready"},
               {"terminal", seat.row().id},
               {"pid", seat.row().pid},
               {"reattached", seat.reattached()}});
  seat.Attach(screen);
  co_await ((Listen(socket, screen, keyboard, seat) && socket.Write()) || keyboard.Feed(seat));
  seat.Leave();
}

sdk::PtyCommand CommandOf(const http::Query& query) {
  sdk::PtyCommand command;
  command.cwd = TextParameter(query, "cwd");
  if (auto user = TextParameter(query, "user"); !user.empty()) command.user = std::move(user);
  command.size = {NumberParameter(query, "cols", 80), NumberParameter(query, "rows", 24)};
  command.env = {{"TERM", "xterm-256color"}, {"LANG", "C.UTF-8"}, {"LC_ALL", "C.UTF-8"}};
  return command;
}

json::object Encode(const terminal::Terminals::Shown& shown) {
  return {{"id", shown.row.id},
          {"pid", shown.row.pid},
          {"attached", shown.viewers},
          {"created_at", FormatTime(shown.row.created_at)}};
}

}  // namespace

Answer TerminalRoutes::Open(Call& call) {
  const http::RequestHead& request = call.exchange.request();
  if (call.inner || !http::WantsWebSocket(request))
    co_return NoWebSocket(call, "a terminal is a WebSocket: ask for one");
  if (CameByCookies(call) && !IsOwnPage(request))
    co_return ErrorResponse(Refusal{403, "wrong_origin", "only this server's own page may do this"},
                            call.exchange.request_id());
  std::string id = TextParameter(call.query, "terminal");
  sdk::PtyCommand command = CommandOf(call.query);
  sdk::PtySize size = command.size;
  auto seat = id.empty() ? co_await terminals_.Open(call.who.user_id, call.params.at("id"), command)
                         : co_await terminals_.Reopen(call.who.user_id, call.params.at("id"), id);
  if (!seat) co_return RefusedSandbox(seat.error(), call);
  // Of who comes back the window may be another one.
  if ((*seat)->reattached()) (void)co_await (*seat)->Resize(size);
  const terminal::Options& options = terminals_.options();
  auto socket = co_await http::WebSocket::Accept(
      call.exchange, {.max_message = kMaxMessage,
                      .max_waiting = options.history_bytes + options.queue_bytes + kSlack,
                      .ping = options.ping});
  if (!socket && !call.exchange.answered()) co_return NoWebSocket(call, socket.error().message());
  if (socket) co_await Converse(**socket, **seat);
  co_return http::Response::Empty(200);
}

Answer TerminalRoutes::List(Call& call) {
  auto list = co_await terminals_.List(call.who.user_id, call.params.at("id"));
  if (!list) co_return RefusedSandbox(list.error(), call);
  json::array items;
  for (const auto& shown : *list) items.push_back(Encode(shown));
  json::object body{{"total", items.size()}};
  body["terminals"] = std::move(items);
  co_return http::Response::Json(200, body);
}

Answer TerminalRoutes::End(Call& call) {
  Status ended =
      co_await terminals_.End(call.who.user_id, call.params.at("id"), call.params.at("terminal"));
  if (!ended) co_return RefusedSandbox(ended.error(), call);
  co_return http::Response::Empty(204);
}

void TerminalRoutes::Add(Frame& frame) {
  frame.AddSchema("Terminal", kTerminal);
  frame.AddSchema("TerminalList", kTerminalList);
  auto bind = [this](Answer (TerminalRoutes::*method)(Call&)) {
    return [this, method](Call& call) { return (this->*method)(call); };
  };
  frame.Add({.method = "GET",
             .pattern = "/api/v1/sandboxes/{id}/terminal",
             .tag = "sandboxes",
             .id = "openTerminal",
             .summary = "A shell over a WebSocket; 426 without an upgrade",
             .parameters = {{.name = "cols", .type = "integer", .min = 1, .max = kMaxSide},
                            {.name = "rows", .type = "integer", .min = 1, .max = kMaxSide},
                            {.name = "terminal", .description = "a shell to come back to"},
                            {.name = "cwd", .description = "where a new one starts"},
                            {.name = "user", .description = "who a new one is [user]"}},
             .responses = {{101, ""}, {409, "Error"}, {426, "Error"}, {503, "Error"}},
             .handler = bind(&TerminalRoutes::Open)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/sandboxes/{id}/terminals",
             .tag = "sandboxes",
             .id = "listTerminals",
             .summary = "The shells that were opened in a sandbox; wakes nothing",
             .access = Access::kViewer,
             .responses = {{200, "TerminalList"}},
             .handler = bind(&TerminalRoutes::List)});
  frame.Add({.method = "DELETE",
             .pattern = "/api/v1/sandboxes/{id}/terminals/{terminal}",
             .tag = "sandboxes",
             .id = "endTerminal",
             .summary = "End a shell and everything it started",
             .responses = {{204, ""}, {409, "Error"}, {503, "Error"}},
             .handler = bind(&TerminalRoutes::End)});
}

}  // namespace caisson::api

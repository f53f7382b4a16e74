#include "envd/daemon.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json/parse.hpp>

#include "base/encoding.h"
#include "base/text.h"
#include "base/time.h"
#include "envd/auth.h"
#include "envd/boot.h"
#include "envd/cors.h"
#include "envd/proto_json.h"

namespace caisson::envd {
namespace {

constexpr int kBacklog = 1024;

http::ServerOptions ServerOptionsOf(const Limits& limits) {
  http::ServerOptions options;
  options.max_connections = static_cast<size_t>(limits.max_connections);
  options.idle_timeout = std::chrono::milliseconds(limits.idle_timeout_ms);
  options.body_stall_timeout = std::chrono::milliseconds(limits.stall_timeout_ms);
  return options;
}

// These check for themselves: by signature, or by the token in the body.
bool IsOpenPath(const http::RequestHead& head) {
  std::string_view path = head.Path();
  if (head.method == "GET") return path == "/health" || path == "/files";
  return head.method == "POST" && (path == "/files" || path == "/init");
}

http::Response NoContent() {
  http::Response response = http::Response::Empty(204);
  response.headers.Set("Cache-Control", "no-store");
  return response;
}

Task<void> SendAnswer(http::Exchange& exchange, http::Response response) {
  (void)co_await exchange.Send(std::move(response));
}

Result<UniqueFd> Listen(const sockaddr* address, socklen_t size) {
  UniqueFd fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return FailErrno("cannot create a socket");
  int on = 1, off = 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address->sa_family == AF_INET6)
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(fd.get(), address, size) != 0 || listen(fd.get(), kBacklog) != 0)
    return FailErrno("cannot listen");
  return fd;
}

// `before` with what POST /init changes; what it does not name stays.
Result<Settings> ReadInit(const Fields& fields, const Settings& before) {
  Settings settings = before;
  TRY_ASSIGN(std::string id, fields.String("sandboxId"));
  TRY_ASSIGN(std::string token, fields.String("accessToken"));
  TRY_ASSIGN(EnvVars env_vars, fields.StringMap("envVars"));
  TRY_ASSIGN(std::string user, fields.String("defaultUser"));
  TRY_ASSIGN(std::string workdir, fields.String("defaultWorkdir"));
  TRY_ASSIGN(const json::object* limits, fields.Message("limits"));
  if (limits != nullptr && Fields(*limits).Has("output_kbps")) {
    TRY_ASSIGN(settings.limits.output_kbps, Fields(*limits).Uint32("output_kbps"));
  }
  if (!id.empty()) settings.sandbox_id = std::move(id);
  if (fields.Has("accessToken")) settings.access_token = std::move(token);
  if (fields.Has("envVars")) settings.env_vars = std::move(env_vars);
  if (!user.empty()) settings.default_user = std::move(user);
  if (!workdir.empty()) settings.default_workdir = std::move(workdir);
  return settings;
}

}  // namespace

Result<UniqueFd> OpenListener(uint16_t port) {
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(port);
  auto fd = Listen(reinterpret_cast<const sockaddr*>(&any6), sizeof any6);
  if (fd || fd.error().sys_errno() == EADDRINUSE) return fd;
  sockaddr_in any4{};  // a kernel or sandbox without IPv6
  any4.sin_family = AF_INET;
  any4.sin_port = htons(port);
  return Listen(reinterpret_cast<const sockaddr*>(&any4), sizeof any4);
}

Daemon::Daemon(asio::any_io_executor executor, Settings settings)
    : settings_(std::move(settings)),
      resources_(ResourceLimits::FromEnvironment()),
      processes_(executor, settings_),
      process_service_(settings_, processes_),
      filesystem_service_(executor, settings_, worker_),
      file_api_(settings_, worker_),
      server_(executor, ServerOptionsOf(settings_.limits),
              [this](http::Exchange& exchange) { return Handle(exchange); }) {
  RegisterRoutes();
}

void Daemon::RegisterRoutes() {
  process_service_.Register(router_);
  filesystem_service_.Register(router_);
  file_api_.Register(router_);
  router_.Add("GET", "/health", [](http::Exchange& exchange, http::PathParams) {
    return SendAnswer(exchange, NoContent());
  });
  router_.Add("GET", "/envs", [this](http::Exchange& exchange, http::PathParams) {
    json::object envs;
    for (const auto& [name, value] : settings_.GlobalEnv()) envs[name] = value;
    return SendAnswer(exchange, http::Response::Json(200, envs));
  });
  router_.Add("GET", "/metrics", [this](http::Exchange& exchange, http::PathParams) {
    auto metrics = resources_.Metrics();
    return SendAnswer(exchange, metrics ? http::Response::Json(200, *metrics)
                                        : ErrorResponse(500, metrics.error().message()));
  });
  router_.Add("POST", "/init",
              [this](http::Exchange& exchange, http::PathParams) { return Init(exchange); });
}

Status Daemon::Start() {
  TRY_ASSIGN(UniqueFd listener, OpenListener(settings_.port));
  TRY(processes_.Begin());
  return server_.Adopt(std::move(listener));
}

Task<void> Daemon::Stop() {
  co_await server_.Stop(std::chrono::milliseconds(0));
  co_await filesystem_service_.Stop();
  co_await processes_.Stop();
}

Task<void> Daemon::Handle(http::Exchange& exchange) {
  if (!exchange.request().headers.Has("Origin")) {
    co_await Dispatch(exchange);
  } else if (IsPreflight(exchange.request())) {
    (void)co_await exchange.Send(PreflightAnswer(exchange.request()));
  } else {
    CorsExchange shared(exchange);
    co_await Dispatch(shared);
  }
}

Task<void> Daemon::Dispatch(http::Exchange& exchange) {
  const http::RequestHead& head = exchange.request();
  if (!IsOpenPath(head) && !HasToken(head, settings_)) {
    (void)co_await exchange.Send(
        ErrorResponse(401,
                      "unauthorized access, please provide a valid access token or method signing "
                      "if supported"));
    co_return;
  }
  http::Router::Match match = router_.Find(head.method, head.Path());
  if (match.handler != nullptr) {
    co_await (*match.handler)(exchange, std::move(match.params));
  } else if (match.allowed.empty()) {
    (void)co_await exchange.Send(http::Response::Text(404, "404 page not found\n"));
  } else {
    http::Response response = http::Response::Text(405, "405 method not allowed\n");
    for (const std::string& method : match.allowed) response.headers.Add("Allow", method);
    (void)co_await exchange.Send(std::move(response));
  }
}

Task<void> Daemon::Init(http::Exchange& exchange) {
  auto body = co_await exchange.ReadAll(static_cast<size_t>(settings_.limits.max_request_bytes));
  Status applied = body ? ApplyInit(exchange.request(), *body) : tl::unexpected(body.error());
  http::Response response = applied ? NoContent() : ErrorResponse(applied.error());
  (void)co_await exchange.Send(std::move(response));
}

Status Daemon::ApplyInit(const http::RequestHead& head, std::string_view body) {
  boost::system::error_code ec;
  json::value document = Trim(body).empty() ? json::object() : json::parse(body, ec);
  if (ec || !document.is_object())
    return Fail(Code::kInvalidArgument, "the request is not a JSON object");
  Fields fields(document.get_object());
  TRY_ASSIGN(std::string token, fields.String("accessToken"));
  // SECURITY: whoever may change the token must know it. With none set, the first one counts. The
  // current token in the body counts, too: so the same request may be sent again.
  if (!HasToken(head, settings_) && !ConstantTimeEqual(token, settings_.access_token))
    return Fail(Code::kUnauthenticated, "access token validation failed");
  TRY_ASSIGN(Settings changed, ReadInit(fields, settings_));
  TRY_ASSIGN(bool reset_identity, fields.Bool("resetIdentity"));
  TRY_ASSIGN(std::string timestamp, fields.String("timestamp"));
  if (!timestamp.empty()) {
    TRY_ASSIGN(Time time, ParseTime(timestamp));
    // An older one came late. A new id is never old: the clock may have been set back since.
    bool renamed = changed.sandbox_id != settings_.sandbox_id;
    if (initialized_ && time <= *initialized_ && !renamed) return {};
    initialized_ = time;
  }
  settings_ = std::move(changed);
  if (reset_identity) http::RenewRequestIds();
  if (getpid() == 1) WriteIdentity(settings_, reset_identity);
  processes_.KeepEnds();
  return {};
}

}  // namespace caisson::envd

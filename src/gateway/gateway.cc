#include "gateway/gateway.h"

#include <array>
#include <unordered_map>

#include "base/encoding.h"
#include "base/log.h"
#include "base/text.h"
#include "base/time.h"
#include "gateway/connect.h"
#include "gateway/editor_pass.h"
#include "gateway/flow.h"
#include "gateway/headers.h"
#include "gateway/problem.h"
#include "gateway/signature.h"
#include "gateway/target.h"

namespace caisson::gateway {
namespace {

constexpr std::chrono::milliseconds kSweepInterval{1'000};

// What only the engine may ask of envd.
constexpr std::array<std::string_view, 7> kInternalPaths = {
    "init", "freeze", "unfreeze", "collapse", "fsfreeze", "fsthaw", "upgrade"};

// SECURITY: compares after decoding and without empty segments, so that "//init", "/init/" and
// "/%69nit" are what they would be to a lenient server behind.
bool IsInternalPath(std::string_view path) {
  std::string decoded = PercentDecode(path).value_or(std::string(path));
  std::string_view name = decoded;
  while (name.starts_with('/')) name.remove_prefix(1);
  name = name.substr(0, name.find('/'));
  return std::find(kInternalPaths.begin(), kInternalPaths.end(), name) != kInternalPaths.end();
}

http::Response InternalPathAnswer(std::string_view path) {
  http::Response response = http::Response::Json(
      404, boost::json::object{
               {"message", "This path is internal"}, {"path", ToUtf8(path)}, {"code", 404}});
  response.headers.Set("Content-Type", "application/json; charset=utf-8");
  AllowAnyOrigin(response.headers);
  return response;
}

http::Response InvalidTargetAnswer(const http::RequestHead& request, std::string message) {
  if (IsPreflight(request)) return AnswerPreflight(request);
  http::Response response = http::Response::Text(400, std::move(message));
  AllowAnyOrigin(response.headers);
  return response;
}

http::Response InvalidSignatureAnswer() {
  http::Response response = http::Response::Json(
      401, boost::json::object{{"code", 401}, {"message", "invalid signature"}});
  AllowAnyOrigin(response.headers);
  return response;
}

}  // namespace

GatewayOptions GatewayOptions::From(const Config& config) {
  GatewayOptions options;
  options.domain = config.domain;
  options.envd_timeout = std::chrono::milliseconds(config.envd_timeout_ms);
  options.idle_timeout = std::chrono::milliseconds(config.http_idle_timeout_ms);
  options.max_header_bytes = static_cast<size_t>(config.http_max_header_bytes);
  // The rest is for the control plane.
  options.max_requests =
      std::max<size_t>(1, static_cast<size_t>(config.http_max_connections) * 4 / 5);
  if (!config.editor_command.empty())
    options.editor_port = static_cast<uint16_t>(config.editor_port);
  options.editor_pass_time = std::chrono::days(config.login_refresh_days);
  return options;
}

class Gateway::Impl {
 public:
  Impl(asio::any_io_executor executor, GatewayOptions options, Directory& directory,
       Metrics& metrics)
      : context_{std::move(options), directory, Numbers(metrics)},
        tasks_(executor),
        executor_(executor) {}

  void Start() { tasks_.Spawn("gateway sweep", Sweep()); }

  Task<void> Stop() {
    co_await tasks_.Stop();
    lanes_.clear();
  }

  Task<bool> Handle(http::Exchange& exchange) {
    Target target = FindTarget(exchange.request(), context_.options.domain);
    switch (target.kind) {
      case Target::Kind::kControlPlane:
        co_return false;
      case Target::Kind::kInvalid:
        (void)co_await exchange.Send(
            InvalidTargetAnswer(exchange.request(), std::move(target.message)));
        co_return true;
      case Target::Kind::kSignedUrl:
        target.sandbox_id = FindSigner(exchange.request());
        target.port = context_.options.envd_port;
        break;
      case Target::Kind::kSandbox:
        break;
    }
    co_await Forward(exchange, std::move(target));
    co_return true;
  }

 private:
  // The sandbox whose token made the signature of this URL, or "".
  std::string FindSigner(const http::RequestHead& request) const {
    SignedFields fields = SignedFields::From(request);
    std::string id;
    if (!fields.MayBeAnybodys()) return id;
    http::FileSigner signer = fields.signer();
    context_.directory.ForEachRoute([&](const sandbox::Route& route) {
      if (!route.access_token.empty() && signer.Made(fields.signature, route.access_token))
        id = route.id;
      return !id.empty();
    });
    return id;
  }

  Task<void> Forward(http::Exchange& exchange, Target target) {
    const http::RequestHead& request = exchange.request();
    bool to_envd = target.port == context_.options.envd_port;
    if (to_envd && IsPreflight(request))
      co_return (void) co_await exchange.Send(AnswerPreflight(request));
    if (target.sandbox_id.empty())
      co_return (void) co_await exchange.Send(InvalidSignatureAnswer());
    if (to_envd && IsInternalPath(request.Path()))
      co_return (void) co_await exchange.Send(InternalPathAnswer(request.Path()));

    if (auto response = AcceptPass(exchange, target))
      co_return (void) co_await exchange.Send(std::move(*response));

    // Also of those that wait for it to wake up.
    Shares<std::string>::Place place(context_.requests, target.sandbox_id);
    if (!place)
      co_return (void) co_await exchange.Send(Render(TooManyRequests(target.sandbox_id), request));

    std::optional<Problem> problem;
    if (!context_.directory.FindRoute(target.sandbox_id)) problem = co_await Wake(request, target);
    if (problem) co_return (void) co_await exchange.Send(Render(*problem, request));
    const sandbox::Route* route = context_.directory.FindRoute(target.sandbox_id);
    if (!route)
      problem = SandboxNotFound(target.sandbox_id);
    else if (!to_envd)
      problem = CheckAccess(request, *route, target.port);
    if (!problem && route->held) problem = StandsStill(target.sandbox_id);
    if (problem) co_return (void) co_await exchange.Send(Render(*problem, request));

    Passage passage{.peer_address = exchange.PeerAddress(),
                    .tls = exchange.IsTls(),
                    .mask_request_host = to_envd ? "" : route->mask_request_host,
                    .port = target.port,
                    .to_envd = to_envd,
                    .to_tls = route->https_ports.contains(target.port),
                    .own_origin = target.kind == Target::Kind::kSignedUrl,
                    .access_token = route->access_token,
                    .inside_token = route->inside_token,
                    .is_our_key = context_.options.is_our_key};
    Flow flow(context_, EnterLane(target.sandbox_id), exchange, std::move(passage));
    co_await flow.Run();
  }

  // Resumes a paused sandbox if it wants that and the request may.
  Task<std::optional<Problem>> Wake(const http::RequestHead& request, Target target) {
    const sandbox::Route* sleeper = context_.directory.FindSleeper(target.sandbox_id);
    if (!sleeper) co_return SandboxNotFound(target.sandbox_id);
    // SECURITY: whoever could not use the running sandbox must not start it either.
    bool to_envd = target.port == context_.options.envd_port;
    auto refused =
        to_envd ? CheckEnvdToken(request, *sleeper) : CheckAccess(request, *sleeper, target.port);
    if (refused) co_return refused;
    Status woken = co_await context_.directory.Wake(target.sandbox_id);
    if (!woken) co_return CannotWake(target.sandbox_id, woken.error());
    co_return std::nullopt;
  }

  static std::optional<Problem> CheckEnvdToken(const http::RequestHead& request,
                                               const sandbox::Route& route) {
    if (route.access_token.empty()) return {};
    auto token = request.headers.Get("X-Access-Token");
    if (token && ConstantTimeEqual(*token, route.access_token)) return {};
    SignedFields fields = SignedFields::From(request);
    bool expired =
        fields.expiration && ParseInt<int64_t>(*fields.expiration).value_or(0) < UnixSeconds(Now());
    if (request.Path() == "/files" && !fields.signature.empty() && !expired &&
        fields.signer().Made(fields.signature, route.access_token))
      return {};
    return NotAllowedToWake(route.id);
  }

  // A browser that comes with a new address of the editor gets its cookie; nothing is woken.
  std::optional<http::Response> AcceptPass(const http::Exchange& exchange,
                                           const Target& target) const {
    if (target.port != context_.options.editor_port) return {};
    const sandbox::Route* route = context_.directory.FindRoute(target.sandbox_id);
    if (!route) route = context_.directory.FindSleeper(target.sandbox_id);
    if (!route) return {};
    return AcceptEditorPass(exchange.request(), route->traffic_token, target.port,
                            context_.options.editor_pass_time, exchange.IsTls());
  }

  std::optional<Problem> CheckAccess(const http::RequestHead& request, const sandbox::Route& route,
                                     uint16_t port) const {
    // SECURITY: an editor is a shell for whoever reaches it, so its port is never public.
    if (port == context_.options.editor_port) {
      if (MayUseEditor(request, route.traffic_token, port)) return {};
      return NoEditorPass(route.id, port);
    }
    if (route.allow_public_traffic) return {};
    auto token = request.headers.Get("E2b-Traffic-Access-Token");
    if (token && !route.traffic_token.empty() && ConstantTimeEqual(*token, route.traffic_token))
      return {};
    return NoTrafficToken(route.id, /*wrong=*/token.has_value());
  }

  std::shared_ptr<Lane> EnterLane(const std::string& id) {
    std::shared_ptr<Lane>& lane = lanes_[id];
    if (lane) return lane;
    lane = std::make_shared<Lane>(context_.directory, id, context_.options.max_idle_connections,
                                  context_.options.max_idle_time);
    // The callback may run at once and drop the lane from the map; the copy keeps it alive.
    std::shared_ptr<Lane> mine = lane;
    mine->Follow([this, id] { lanes_.erase(id); });
    return mine;
  }

  Task<void> Sweep() {
    for (;;) {
      co_await SleepFor(std::min(kSweepInterval, context_.options.envd_timeout / 4));
      auto now = Clock::now();
      std::vector<std::shared_ptr<Lane>> silent;
      for (auto it = lanes_.begin(); it != lanes_.end();) {
        if (EnvdIsSilent(*it->second, now)) silent.push_back(it->second);
        it = it->second->Expire(now) ? lanes_.erase(it) : std::next(it);
      }
      for (auto& lane : silent) {
        lane->probing = true;
        tasks_.Spawn("gateway probe", Probe(std::move(lane)));
      }
    }
  }

  bool EnvdIsSilent(const Lane& lane, Clock::time_point now) const {
    if (lane.probing || context_.directory.StandsStill(lane.id())) return false;
    for (const Flow* flow : lane.flows())
      if (flow->to_envd() && now - flow->silent_since() > context_.options.envd_timeout)
        return true;
    return false;
  }

  // Silence is not death: a watch without events is silent. Asks envd for a sign of life.
  Task<void> Probe(std::shared_ptr<Lane> lane) {
    auto asked = Clock::now();
    Status alive = co_await WithDeadline(context_.options.envd_timeout,
                                         "asking envd whether it lives", AskHealth(lane->id()));
    lane->probing = false;
    if (lane->gone()) co_return;
    bool excused = alive || context_.directory.StandsStill(lane->id());
    if (!excused) {
      LogWarn("envd does not answer",
              {{"sandbox", lane->id()}, {"error", alive.error().message()}});
      context_.directory.ReportUnresponsive(lane->id(), "envd does not answer");
    }
    for (Flow* flow : lane->flows()) {
      if (!flow->to_envd() || flow->silent_since() >= asked) continue;
      if (excused)
        flow->Moved();
      else
        flow->End(Cut::kUnresponsive);
    }
  }

  Task<Status> AskHealth(std::string id) {
    CO_TRY_ASSIGN(UniqueFd socket,
                  co_await ConnectLoopback(context_.directory, id, context_.options.envd_port,
                                           context_.options.connect_timeout));
    CO_TRY_ASSIGN(auto stream, http::MakeSocketStream(executor_, std::move(socket)));
    http::ClientConnection connection(std::move(stream));
    http::RequestHead head{.method = "GET", .target = "/health", .headers = {{"Host", "envd"}}};
    CO_TRY_ASSIGN(auto response, co_await connection.Fetch(std::move(head), "", 4096));
    if (response.status >= 300)
      co_return Fail(Code::kUnavailable, "envd answered {}", response.status);
    co_return Status();
  }

  Context context_;
  TaskGroup tasks_;
  asio::any_io_executor executor_;
  std::unordered_map<std::string, std::shared_ptr<Lane>> lanes_;
};

Gateway::Gateway(asio::any_io_executor executor, GatewayOptions options, Directory& directory,
                 Metrics& metrics)
    : impl_(std::make_unique<Impl>(std::move(executor), std::move(options), directory, metrics)) {}
Gateway::~Gateway() = default;

void Gateway::Start() { impl_->Start(); }
Task<void> Gateway::Stop() { return impl_->Stop(); }
Task<bool> Gateway::Handle(http::Exchange& exchange) { return impl_->Handle(exchange); }

}  // namespace caisson::gateway

#include "cli/app.h"

#include "api/account_routes.h"
#include "api/auth_routes.h"
#include "api/inspect_routes.h"
#include "api/preference_routes.h"
#include "api/sign_in_routes.h"
#include "api/usage_routes.h"
#include "base/encoding.h"
#include "base/log.h"
#include "cli/site.h"
#include "store/open_database.h"

namespace caisson::cli {
namespace {

// A request that arrives while the server starts waits so long at most.
constexpr std::chrono::milliseconds kStartPatience{60'000};
constexpr std::chrono::milliseconds kDatabaseInterval{500};

http::ServerOptions ServerOptionsFrom(const Config& config) {
  using std::chrono::milliseconds;
  return {.max_connections = static_cast<size_t>(config.http_max_connections),
          .max_per_peer = static_cast<size_t>(config.http_max_per_peer),
          .max_header_bytes = static_cast<size_t>(config.http_max_header_bytes),
          .header_timeout = milliseconds(config.http_header_timeout_ms),
          .idle_timeout = milliseconds(config.http_idle_timeout_ms),
          .body_stall_timeout = milliseconds(config.http_body_stall_timeout_ms)};
}

// `secret` is what makes a server the same one after a restart, so its name comes from it.
store::StoreOptions StoreOptionsFrom(const Config& config, const std::string& secret) {
  return {.max_events = config.max_events,
          .retention = {.days = config.retention_days,
                        .events_days = config.events_retention_days,
                        .audit_days = config.audit_retention_days,
                        .idempotency_hours = config.idempotency_hours},
          .pool_min = config.database_pool_min,
          .pool_max = config.database_pool_max,
          .node = HexEncode(HmacSha256(secret, "node")).substr(0, 16)};
}

// Tells servers that share a provider apart, and nothing of the secret.
std::string InstallationOf(const std::string& secret) {
  return HexEncode(HmacSha256(secret, "installation")).substr(0, 16);
}

// The engine says what lies on its disk.
Task<Result<boost::json::object>> AskEngine(sandbox::Manager& manager) {
  CO_TRY_ASSIGN(auto use, co_await manager.Storage());
  co_return boost::json::object{{"running", use.running.count},
                                {"paused", use.paused.count},
                                {"snapshots", use.snapshots.count}};
}

}  // namespace

App::App(asio::any_io_executor executor, Config config, AppInputs inputs,
         std::function<void()> engine_gone)
    : executor_(executor),
      config_(std::move(config)),
      inputs_(std::move(inputs)),
      engine_(executor, std::move(inputs_.engine_socket)),
      server_(
          executor, ServerOptionsFrom(config_),
          [this](http::Exchange& exchange) { return Handle(*this, exchange); }, inputs_.tls),
      ready_changed_(executor) {
  engine_.OnEngineGone(std::move(engine_gone));
}

App::~App() = default;

Status App::Listen() { return server_.Listen(config_.listen); }

Task<Status> App::OpenStore() {
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(config_.database_wait_s);
  for (bool told = false;; told = true) {
    auto opened = store::OpenStore(config_.database_url, executor_,
                                   StoreOptionsFrom(config_, inputs_.secret));
    if (opened) {
      store_ = std::move(*opened);
      co_return Status();
    }
    Error error = std::move(opened).error();
    if (!store::IsPostgresUrl(config_.database_url) || !store::MayComeUp(error))
      co_return tl::unexpected(std::move(error));
    if (std::chrono::steady_clock::now() >= until)
      co_return Fail(Code::kUnavailable,
                     "the database did not come up within {} s (database_wait_s): {}",
                     config_.database_wait_s, error.message());
    if (!told)
      LogWarn("waiting for the database",
              {{"seconds", config_.database_wait_s}, {"error", error.message()}});
    co_await SleepFor(kDatabaseInterval);
  }
}

Task<Status> App::Start() {
  accounts_ = std::make_unique<account::Accounts>(executor_, *store_, inputs_.keys, inputs_.secret,
                                                  config_);
  CO_TRY(co_await accounts_->Start());
  audit_trail_ = std::make_unique<account::AuditTrail>(executor_, *store_);
  manager_ = std::make_unique<sandbox::Manager>(executor_, config_, engine_, *store_,
                                                inputs_.templates, inputs_.secret);
  engine_.Start();
  CO_TRY(co_await manager_->Start());
  github_tokens_ = std::make_unique<account::GithubTokens>(*store_, inputs_.secret);
  platform_ =
      std::make_unique<Platform>(executor_, config_, *store_, *manager_, *github_tokens_,
                                 inputs_.models, InstallationOf(inputs_.secret), metrics_, port());
  CO_TRY(co_await platform_->Start());
  directory_ = std::make_unique<gateway::ManagerDirectory>(*manager_);
  auto gateway_options = gateway::GatewayOptions::From(config_);
  gateway_options.is_our_key = [this](std::string_view text) { return accounts_->Opens(text); };
  gateway_ = std::make_unique<gateway::Gateway>(executor_, std::move(gateway_options), *directory_,
                                                metrics_);
  gateway_->Start();
  e2b_api_ = std::make_unique<e2b::Api>(*manager_, *accounts_, *audit_trail_, inputs_.templates,
                                        config_, port());
  e2b_api_->AddRoutes(router_);
  accounts_->OnKeysChanged([this] { return manager_->ReloadKeyLimits(); });
  alerts_ = std::make_unique<Alerts>(
      executor_, config_, metrics_,
      Alerts::Sources{.sandboxes = [this] { return manager_->running(); },
                      .tell =
                          [this](std::string type, const boost::json::object& data) {
                            platform_->TellAdmin(std::move(type), data);
                          }});
  AddRoutes();
  AddSiteRoutes(
      router_, {.metrics = metrics_, .refresh = [this] { SetGauges(); }, .domain = config_.domain});
  front_ = std::make_unique<Front>(*gateway_, router_, metrics_, *alerts_, frame_->LastingRoutes());
  alerts_->Start();
  ready_ = true;
  ready_changed_.Notify();
  co_return Status();
}

void App::AddRoutes() {
  github_sign_in_ = std::make_unique<forge::OAuth>(executor_, config_);
  frame_ = std::make_unique<api::Frame>(router_, *store_, *accounts_, config_);
  frame_->SetRates(
      {.admit = [this](const std::string& user_id) { return manager_->Admit(user_id); },
       .retry_after =
           [this](const std::string& user_id) {
             return std::max(manager_->RetryAfter(user_id), platform_->StartsRetryAfter(user_id));
           }});
  api::AddServerRoutes(*frame_, *store_, Probes(), [this] { return alerts_->Active(); });
  api::AddAuthRoutes(*frame_, *accounts_, config_);
  api::AddSignInRoutes(*frame_, *accounts_, *github_sign_in_, config_);
  api::AddPreferenceRoutes(*frame_, *store_, config_);
  api::AddAccountRoutes(*frame_, *accounts_);
  api::AddInspectRoutes(*frame_, *manager_, config_);
  platform_->AddRoutes(*frame_);
  api::AddUsageRoutes(*frame_, {*store_, *accounts_, *manager_, platform_->costs(), config_});
}

std::vector<api::HealthProbe> App::Probes() {
  std::vector<api::HealthProbe> probes = {
      api::DatabaseProbe(*store_),
      {.name = "engine", .vital = true, .ask = [this] { return AskEngine(*manager_); }}};
  for (api::HealthProbe& probe : platform_->Probes()) probes.push_back(std::move(probe));
  return probes;
}

Task<void> App::Stop() {
  if (platform_) platform_->EndStreams();
  co_await server_.Stop(std::chrono::milliseconds(config_.shutdown_grace_ms));
  if (alerts_) co_await alerts_->Stop();
  if (platform_) co_await platform_->Stop();
  if (gateway_) co_await gateway_->Stop();
  if (manager_) co_await manager_->Stop();
  engine_.Stop();
  if (audit_trail_) co_await audit_trail_->Stop();
  if (accounts_) co_await accounts_->Stop();
  if (!store_) co_return;
  if (Status closed = co_await store_->Close(); !closed)
    LogError("the database was not closed well", {{"error", closed.error().message()}});
}

Task<void> App::Handle(App& app, http::Exchange& exchange) {
  if (!app.ready_) co_await app.ready_changed_.Wait(kStartPatience);
  if (app.ready_) co_return co_await app.front_->Handle(exchange);
  if (exchange.request().Path().starts_with("/api/v1/")) {
    Error starting(Code::kUnavailable, "the server is still starting");
    co_return (void) co_await exchange.Send(api::ErrorResponse(starting, exchange.request_id()));
  }
  http::Response busy = http::Response::Json(
      503, boost::json::object{{"code", 503}, {"message", "The server is still starting"}});
  busy.headers.Set("Retry-After", "1");
  (void)co_await exchange.Send(std::move(busy));
}

void App::SetSavedGauges() {
  auto set = [this](const char* kind, const char* part, int64_t bytes) {
    metrics_
        .AddGauge("caisson_saved_bytes",
                  "Disk that paused sandboxes and snapshots with their layers take.",
                  {{"kind", kind}, {"part", part}})
        .Set(static_cast<double>(bytes));
  };
  sandbox::StorageUse saved = manager_->saved();
  set("paused", "memory", saved.paused.memory_bytes);
  set("paused", "disk", saved.paused.disk_bytes);
  set("snapshot", "memory", saved.snapshots.memory_bytes);
  set("snapshot", "disk", saved.snapshots.disk_bytes);
}

void App::SetGauges() {
  platform_->SetGauges();
  metrics_.AddGauge("caisson_sandboxes_running", "Sandboxes that run now.")
      .Set(static_cast<double>(manager_->running()));
  metrics_.AddGauge("caisson_sandboxes_paused", "Sandboxes that are paused.")
      .Set(static_cast<double>(manager_->paused()));
  SetSavedGauges();
  sandbox::PoolNumbers pool = manager_->pool();
  metrics_.AddGauge("caisson_pool_ready", "Sandboxes that are kept ready.")
      .Set(static_cast<double>(pool.ready));
  auto count = [this](const char* result, uint64_t total) {
    Counter counter =
        metrics_.AddCounter("caisson_pool_takes_total",
                            "Creates that could have used the warm pool.", {{"result", result}});
    counter.Add(static_cast<double>(total) - counter.value());
  };
  count("hit", pool.hits);
  count("miss", pool.misses);
  CountCache(metrics_, "pool", pool.hits, pool.misses);
  store::DatabasePool database = store_->pool();
  metrics_.AddGauge("caisson_database_connections", "Open connections to the database.")
      .Set(static_cast<double>(database.connections));
  metrics_.AddGauge("caisson_database_connections_busy", "Those of them that are in use.")
      .Set(static_cast<double>(database.busy));
  metrics_.AddGauge("caisson_database_waiting", "Calls that wait for the database.")
      .Set(static_cast<double>(database.waiting));
  metrics_.AddGauge("caisson_http_connections", "Open client connections.")
      .Set(static_cast<double>(server_.connections()));
  metrics_
      .AddGauge("caisson_build_info", "Always 1; the label tells the version.",
                {{"version", CAISSON_VERSION}})
      .Set(1);
}

}  // namespace caisson::cli

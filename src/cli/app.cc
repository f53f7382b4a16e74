#include "cli/app.h"

#include "base/log.h"
#include "cli/site.h"

namespace caisson::cli {
namespace {

// A request that arrives while the server starts waits so long at most.
constexpr std::chrono::milliseconds kStartPatience{60'000};

http::ServerOptions ServerOptionsFrom(const Config& config) {
  using std::chrono::milliseconds;
  return {.max_connections = static_cast<size_t>(config.http_max_connections),
          .max_header_bytes = static_cast<size_t>(config.http_max_header_bytes),
          .header_timeout = milliseconds(config.http_header_timeout_ms),
          .idle_timeout = milliseconds(config.http_idle_timeout_ms),
          .body_stall_timeout = milliseconds(config.http_body_stall_timeout_ms)};
}

store::StoreOptions StoreOptionsFrom(const Config& config) {
  return {.max_events = config.max_events, .retention_days = config.retention_days};
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

Task<Status> App::Start() {
  CO_TRY_ASSIGN(store_,
                store::OpenStore(config_.database_url, executor_, StoreOptionsFrom(config_)));
  CO_TRY(co_await inputs_.keys.Load(*store_));
  manager_ = std::make_unique<sandbox::Manager>(executor_, config_, engine_, *store_,
                                                inputs_.templates, inputs_.secret);
  engine_.Start();
  CO_TRY(co_await manager_->Start());
  directory_ = std::make_unique<gateway::ManagerDirectory>(*manager_);
  gateway_ = std::make_unique<gateway::Gateway>(executor_, gateway::GatewayOptions::From(config_),
                                                *directory_, metrics_);
  gateway_->Start();
  e2b_api_ =
      std::make_unique<e2b::Api>(*manager_, inputs_.keys, inputs_.templates, config_, port());
  e2b_api_->AddRoutes(router_);
  own_api_ = std::make_unique<api::Api>(*manager_, inputs_.keys, config_);
  own_api_->AddRoutes(router_);
  AddSiteRoutes(router_, {.metrics = metrics_, .refresh = [this] { SetGauges(); }});
  front_ = std::make_unique<Front>(*gateway_, router_, metrics_);
  ready_ = true;
  ready_changed_.Notify();
  co_return Status();
}

Task<void> App::Stop() {
  co_await server_.Stop(std::chrono::milliseconds(config_.shutdown_grace_ms));
  if (gateway_) co_await gateway_->Stop();
  if (manager_) co_await manager_->Stop();
  engine_.Stop();
  if (!store_) co_return;
  if (Status closed = co_await store_->Close(); !closed)
    LogError("the database was not closed well", {{"error", closed.error().message()}});
}

Task<void> App::Handle(App& app, http::Exchange& exchange) {
  if (!app.ready_) co_await app.ready_changed_.Wait(kStartPatience);
  if (app.ready_) co_return co_await app.front_->Handle(exchange);
  http::Response busy = http::Response::Json(
      503, boost::json::object{{"code", 503}, {"message", "The server is still starting"}});
  busy.headers.Set("Retry-After", "1");
  (void)co_await exchange.Send(std::move(busy));
}

void App::SetGauges() {
  metrics_.AddGauge("caisson_sandboxes_running", "Sandboxes that run now.")
      .Set(static_cast<double>(manager_->running()));
  metrics_.AddGauge("caisson_sandboxes_paused", "Sandboxes that are paused.")
      .Set(static_cast<double>(manager_->paused()));
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
  metrics_.AddGauge("caisson_http_connections", "Open client connections.")
      .Set(static_cast<double>(server_.connections()));
  metrics_
      .AddGauge("caisson_build_info", "Always 1; the label tells the version.",
                {{"version", CAISSON_VERSION}})
      .Set(1);
}

}  // namespace caisson::cli

// The composition root: which part is made from which, and in what order they start and stop.
#pragma once

#include <memory>
#include <string>

#include "account/accounts.h"
#include "account/audit_trail.h"
#include "account/github_tokens.h"
#include "account/key_ring.h"
#include "api/frame.h"
#include "api/server_routes.h"
#include "base/async.h"
#include "base/config.h"
#include "base/metrics.h"
#include "cli/alerts.h"
#include "cli/front.h"
#include "cli/platform.h"
#include "e2b/api.h"
#include "engine/client.h"
#include "forge/oauth.h"
#include "gateway/gateway.h"
#include "http/server.h"
#include "sandbox/manager.h"
#include "sandbox/template.h"
#include "store/store.h"

namespace caisson::cli {

// What only root can get hold of.
struct AppInputs {
  account::KeyRing keys;
  std::string secret;
  sandbox::TemplateCatalog templates;
  UniqueFd engine_socket;
  http::StreamFactory tls;  // empty: plain HTTP
  std::vector<git::ModelRoute> models;
};

class App {
 public:
  // `engine_gone` is called once if the engine process ends by itself.
  App(asio::any_io_executor executor, Config config, AppInputs inputs,
      std::function<void()> engine_gone);
  ~App();

  // Binds the port, which may need root. Requests wait until Start() is done.
  Status Listen();
  uint16_t port() const { return server_.port(); }
  // Waits for a PostgreSQL that is not up yet (database_wait_s); may be canceled meanwhile.
  Task<Status> OpenStore();
  // After that: adopts the sandboxes that live.
  Task<Status> Start();
  // Ends requests, then everything below them. Sandboxes live on, or are paused (on_shutdown).
  Task<void> Stop();

 private:
  // Everything under /api/v1.
  void AddRoutes();
  // What GET /api/v1/health/detailed asks.
  std::vector<api::HealthProbe> Probes();
  static Task<void> Handle(App& app, http::Exchange& exchange);
  void SetGauges();
  void SetSavedGauges();

  asio::any_io_executor executor_;
  Config config_;
  AppInputs inputs_;
  Metrics metrics_;
  engine::Client engine_;
  http::Router router_;
  http::Server server_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<account::Accounts> accounts_;
  std::unique_ptr<account::AuditTrail> audit_trail_;
  std::unique_ptr<forge::OAuth> github_sign_in_;
  std::unique_ptr<sandbox::Manager> manager_;
  std::unique_ptr<account::GithubTokens> github_tokens_;
  std::unique_ptr<Platform> platform_;
  std::unique_ptr<gateway::ManagerDirectory> directory_;
  std::unique_ptr<gateway::Gateway> gateway_;
  std::unique_ptr<e2b::Api> e2b_api_;
  std::unique_ptr<api::Frame> frame_;
  std::unique_ptr<Alerts> alerts_;
  std::unique_ptr<Front> front_;
  bool ready_ = false;
  Condition ready_changed_;
};

}  // namespace caisson::cli

// The composition root: which part is made from which, and in what order they start and stop.
#pragma once

#include <memory>
#include <string>

#include "api/api.h"
#include "base/async.h"
#include "base/config.h"
#include "base/metrics.h"
#include "cli/front.h"
#include "e2b/api.h"
#include "engine/client.h"
#include "gateway/gateway.h"
#include "http/server.h"
#include "sandbox/key_ring.h"
#include "sandbox/manager.h"
#include "sandbox/template.h"
#include "store/store.h"

namespace caisson::cli {

// What only root can get hold of.
struct AppInputs {
  sandbox::KeyRing keys;
  std::string secret;
  sandbox::TemplateCatalog templates;
  UniqueFd engine_socket;
  http::StreamFactory tls;  // empty: plain HTTP
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
  // Opens the database and adopts the sandboxes that live.
  Task<Status> Start();
  // Ends requests, then everything below them. Sandboxes live on, or are paused (on_shutdown).
  Task<void> Stop();

 private:
  static Task<void> Handle(App& app, http::Exchange& exchange);
  void SetGauges();

  asio::any_io_executor executor_;
  Config config_;
  AppInputs inputs_;
  Metrics metrics_;
  engine::Client engine_;
  http::Router router_;
  http::Server server_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<sandbox::Manager> manager_;
  std::unique_ptr<gateway::ManagerDirectory> directory_;
  std::unique_ptr<gateway::Gateway> gateway_;
  std::unique_ptr<e2b::Api> e2b_api_;
  std::unique_ptr<api::Api> own_api_;
  std::unique_ptr<Front> front_;
  bool ready_ = false;
  Condition ready_changed_;
};

}  // namespace caisson::cli

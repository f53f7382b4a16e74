// The work platform, put together: what its parts are made from, and in what order they start and
// stop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/build_routes.h"
#include "api/event_routes.h"
#include "api/frame.h"
#include "api/output_routes.h"
#include "api/run_routes.h"
#include "api/sandbox_routes.h"
#include "api/server_routes.h"
#include "api/session_routes.h"
#include "api/share_routes.h"
#include "api/terminal_routes.h"
#include "base/config.h"
#include "base/metrics.h"
#include "build/yard.h"
#include "cli/work_metrics.h"
#include "events/log.h"
#include "events/reader.h"
#include "flow/engine.h"
#include "forge/github.h"
#include "git/broker.h"
#include "git/lock.h"
#include "mcp/server.h"
#include "sandbox/manager.h"
#include "sandbox/provider.h"
#include "session/idle_watch.h"
#include "session/keeper.h"
#include "session/message_flow.h"
#include "session/sessions.h"
#include "session/titles.h"
#include "store/store.h"
#include "terminal/terminals.h"
#include "work/authors.h"
#include "work/changes.h"
#include "work/checkouts.h"
#include "work/checkup.h"
#include "work/editors.h"
#include "work/git_desk.h"
#include "work/kept_answer.h"
#include "work/kept_checkouts.h"
#include "work/local_workshop.h"
#include "work/pull_request_watch.h"
#include "work/pull_requests.h"
#include "work/sandboxes.h"
#include "work/task_flow.h"
#include "work/work.h"

namespace caisson::cli {

class Platform {
 public:
  // All of these outlive it. `installation` is a text that no other server has; `port` is the
  // server's own.
  Platform(asio::any_io_executor executor, const Config& config, store::Store& store,
           sandbox::Manager& manager, account::GithubTokens& tokens,
           std::vector<git::ModelRoute> models, std::string installation, Metrics& metrics,
           uint16_t port);

  // Takes up what the server before left.
  Task<Status> Start();
  // Before the server waits for its connections: streams would not end by themselves.
  void EndStreams();
  // Hands back what runs; the next server goes on with it.
  Task<void> Stop();

  void AddRoutes(api::Frame& frame);
  work::Costs& costs() { return work_.costs; }
  // When a user who started too much may start again.
  std::chrono::seconds StartsRetryAfter(const std::string& user_id) const {
    return work_.starts.RetryAfter(user_id);
  }
  // For GET /api/v1/health/detailed.
  std::vector<api::HealthProbe> Probes();
  void SetGauges() const;
  // An event: a fact about the server itself.
  void TellAdmin(std::string type, const boost::json::object& data);

 private:
  void LearnSecrets(const std::vector<git::ModelRoute>& models);
  // Sandboxes of builds reach the models, and no repository.
  build::ModelAccess ModelsFor(const std::vector<git::ModelRoute>& models);
  void TellLowBudget(const forge::Budget& budget);
  void TellRefusedKey(const std::string& id, const std::string& next);

  const Config& config_;
  const uint16_t port_;
  events::Log log_;
  flow::Engine flow_;
  std::unique_ptr<sandbox::Provider> provider_;
  work::Sandboxes sandboxes_;
  work::Editors editors_;
  sandbox::Manager& manager_;
  git::Locks locks_;
  git::Broker broker_;
  forge::GitHub github_;
  work::Platform rules_;
  work::Authors authors_;
  work::Work work_;
  work::PullRequests pull_requests_;
  work::PullRequestWatch pull_request_watch_;
  work::Checkup checkup_;
  work::Checkouts checkouts_;
  work::KeptCheckouts kept_checkouts_;
  work::Changes changes_;
  work::GitDesk git_desk_;
  work::AgentLoop agent_loop_;
  work::LocalWorkshop workshop_;
  work::TaskFlow task_flow_;
  session::Keeper keeper_;
  session::MessageFlow message_flow_;
  session::Sessions sessions_;
  session::Titles titles_;
  session::IdleWatch idle_watch_;
  events::Reader event_reader_;
  api::EventRoutes event_routes_;
  api::OutputRoutes output_routes_;
  api::SandboxRoutes sandbox_routes_;
  api::ShareRoutes share_routes_;
  api::RunRoutes run_routes_;
  api::SessionRoutes session_routes_;
  mcp::Server mcp_;
  build::Yard builds_;
  api::BuildRoutes build_routes_;
  terminal::Terminals terminals_;
  api::TerminalRoutes terminal_routes_;
  Metrics& metrics_;
  WorkMetrics work_metrics_;
  work::KeptAnswer provider_answer_;
};

}  // namespace caisson::cli

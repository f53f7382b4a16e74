#include "cli/platform.h"

#include <boost/json.hpp>

#include "account/key_ring.h"
#include "api/change_routes.h"
#include "api/checkout_routes.h"
#include "api/editor_routes.h"
#include "api/git_routes.h"
#include "api/github_routes.h"
#include "api/github_token_routes.h"
#include "api/port_routes.h"
#include "api/setting_routes.h"
#include "api/work_routes.h"
#include "base/log.h"
#include "base/text.h"
#include "git/ssh.h"
#include "session/event.h"

namespace caisson::cli {
namespace {

std::unique_ptr<sandbox::Provider> MakeProvider(asio::any_io_executor executor,
                                                const Config& config, sandbox::Manager& manager) {
  return sandbox::LogCalls(config.provider == "e2b" ? sandbox::MakeE2bProvider(executor, config)
                                                    : sandbox::MakeLocalProvider(manager, config));
}

std::vector<std::string> NamesOf(const std::vector<git::ModelRoute>& models) {
  std::vector<std::string> names;
  for (const git::ModelRoute& route : models) names.push_back(route.name);
  return names;
}

// Copies of the files of this server's sandboxes.
work::CheckoutShelf ShelfOf(sandbox::Manager& manager) {
  auto save = [&manager](std::string owner_id, std::string sandbox_id,
                         std::string name) -> Task<Result<work::CheckoutShelf::Copy>> {
    CO_TRY_ASSIGN(store::SnapshotRow made,
                  co_await manager.MakeSnapshot(std::move(owner_id), std::move(sandbox_id),
                                                {.name = std::move(name), .memory = false}));
    co_return work::CheckoutShelf::Copy{made.id, made.disk_bytes};
  };
  auto remove = [&manager](std::string owner_id, std::string name) -> Task<Status> {
    Status deleted = co_await manager.DeleteSnapshot(std::move(owner_id), std::move(name));
    if (!deleted && deleted.error().code() == Code::kNotFound) co_return Status();
    co_return deleted;
  };
  return {.save = save, .remove = remove};
}

// Asks for what there is none of: whether the provider answers, and takes our key, is all that
// counts.
Task<Result<boost::json::object>> AskProvider(sandbox::Provider& provider) {
  CO_TRY(co_await provider.List("", {{"caisson_health", "asked"}}));
  co_return boost::json::object{{"name", provider.name()}};
}

}  // namespace

Platform::Platform(asio::any_io_executor executor, const Config& config, store::Store& store,
                   sandbox::Manager& manager, account::GithubTokens& tokens,
                   std::vector<git::ModelRoute> models, std::string installation, Metrics& metrics,
                   uint16_t port)
    : config_(config),
      port_(port),
      log_(executor, store, config),
      flow_(executor, store, config),
      provider_(MakeProvider(executor, config, manager)),
      sandboxes_(executor, config, store, log_, *provider_, installation),
      editors_(config, sandboxes_),
      manager_(manager),
      broker_(executor, config, models),
      github_(executor, config),
      rules_{store, log_, flow_, config},
      authors_(executor, rules_, tokens, github_),
      work_(executor, rules_),
      pull_requests_(rules_,
                     [this](store::Transaction& tx, const store::SessionRow& row) -> Status {
                       TRY(rules_.log.Emit(
                           tx, session::About(row, "session_updated", session::SessionData(row))));
                       return {};
                     }),
      pull_request_watch_(executor, rules_, github_, pull_requests_),
      checkup_(executor, rules_, github_),
      checkouts_(rules_, sandboxes_, broker_, locks_, github_),
      kept_checkouts_(executor, rules_, std::move(installation), ShelfOf(manager)),
      changes_(rules_, sandboxes_, checkouts_),
      git_desk_(rules_, sandboxes_, checkouts_, github_, authors_),
      agent_loop_(executor, rules_),
      workshop_(rules_, sandboxes_, checkouts_, kept_checkouts_, authors_, agent_loop_),
      task_flow_(rules_, workshop_, NamesOf(models)),
      keeper_(rules_, sandboxes_, git_desk_),
      message_flow_(rules_, keeper_, sandboxes_, checkouts_, git_desk_, agent_loop_,
                    NamesOf(models)),
      sessions_(executor, rules_, keeper_, work_.starts, work_.models),
      titles_(executor, rules_),
      idle_watch_(executor, rules_, keeper_, sessions_, sandboxes_),
      event_reader_(store, config),
      event_routes_(executor, log_, event_reader_, store, config),
      output_routes_(event_reader_, store),
      sandbox_routes_(sandboxes_, manager, config),
      share_routes_(work_, changes_, log_, config),
      run_routes_(store, flow_),
      session_routes_(sessions_, sandboxes_),
      mcp_(store, config),
      builds_(executor, rules_, sandboxes_, work_.starts, agent_loop_, ModelsFor(models), port),
      build_routes_(builds_.builds, builds_.removals, builds_.previews, config, builds_.pictures()),
      terminals_(executor, terminal::OptionsFrom(config), store, log_, sandboxes_),
      terminal_routes_(terminals_),
      metrics_(metrics),
      work_metrics_(executor, log_, store, metrics),
      provider_answer_(executor, "provider", [this] { return AskProvider(*provider_); }) {
  LearnSecrets(models);
  provider_->OnKeyRefused(
      [this](const std::string& id, const std::string& next) { TellRefusedKey(id, next); });
  github_.OnLowBudget([this](forge::Budget budget) { TellLowBudget(budget); });
  sandboxes_.OnStopped([this](const std::string& id) { checkouts_.Revoke(id); });
  flow_.Define(task_flow_.Define());
  flow_.Define(message_flow_.DefineSession());
  flow_.Define(message_flow_.DefineMessage());
  flow_.Define(titles_.Define());
  flow_.Define(work::Checkup::Define());
  flow_.Define(builds_.flow.Define());
}

void Platform::LearnSecrets(const std::vector<git::ModelRoute>& models) {
  for (const std::string* secret :
       {&config_.github_webhook_secret, &config_.llm_api_key, &config_.github_oauth_client_secret})
    log_.redactor().Add(*secret);
  for (const std::string* list : {&config_.github_token, &config_.e2b_api_key})
    for (std::string_view token : Split(*list, ',')) log_.redactor().Add(std::string(Trim(token)));
  for (const git::ModelRoute& route : models) log_.redactor().Add(route.value);
}

build::ModelAccess Platform::ModelsFor(const std::vector<git::ModelRoute>& models) {
  auto grant = [this](std::string owner_id, std::string sandbox_id) -> Task<Status> {
    CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect(owner_id, sandbox_id));
    CO_TRY_ASSIGN(UniqueFd listener, co_await provider_->Listen(owner_id, connection.row.backend_id,
                                                                git::Broker::kPort));
    co_return broker_.Open(sandbox_id, std::move(listener),
                           {.repository = {.base_url = config_.github_url}});
  };
  return {.routes = NamesOf(models),
          .grant = grant,
          .revoke = [this](const std::string& sandbox_id) { broker_.Close(sandbox_id); }};
}

void Platform::TellAdmin(std::string type, const boost::json::object& data) {
  events::Event event;
  event.at = Now();
  event.type = std::move(type);
  event.owner_id = account::kAdminId;
  event.data = boost::json::serialize(data);
  log_.Gather(std::move(event));
}

void Platform::TellLowBudget(const forge::Budget& budget) {
  TellAdmin("github_budget_low", {{"limit", budget.limit}, {"remaining", budget.remaining}});
}

void Platform::TellRefusedKey(const std::string& id, const std::string& next) {
  LogWarn("the provider of sandboxes refuses a key", {{"key_id", id}, {"next_key_id", next}});
  boost::json::object data{{"key_id", id}};
  if (!next.empty()) data["next_key_id"] = next;
  TellAdmin("provider_key_refused", data);
}

std::vector<api::HealthProbe> Platform::Probes() {
  return {{.name = "provider", .ask = [this] { return provider_answer_.Get(); }},
          {.name = "github", .ask = [this] { return checkup_.Github(); }},
          {.name = "runs", .ask = [this] { return checkup_.Runs(); }}};
}

Task<Status> Platform::Start() {
  CO_TRY(git::CheckSsh(git::SshAccessOf(config_)));
  CO_TRY(builds_.Check());
  CO_TRY(co_await log_.Start());
  CO_TRY(co_await work_metrics_.Start());
  CO_TRY(co_await sandboxes_.Start());
  co_await kept_checkouts_.Start();
  work_.outside_agents.Start();
  work_.start_queue.Start();
  pull_request_watch_.Start();
  idle_watch_.Start();
  builds_.Start();
  terminals_.Start();
  co_return co_await flow_.Start();
}

void Platform::EndStreams() {
  event_routes_.EndStreams();
  terminals_.EndViewers();
}

Task<void> Platform::Stop() {
  co_await terminals_.Stop();
  co_await idle_watch_.Stop();
  co_await provider_answer_.Stop();
  co_await checkup_.Stop();
  co_await flow_.Stop();
  co_await sessions_.Stop();
  co_await work_.models.Stop();
  co_await builds_.Stop();
  co_await pull_request_watch_.Stop();
  co_await work_.start_queue.Stop();
  co_await work_.outside_agents.Stop();
  co_await kept_checkouts_.Stop();
  co_await broker_.Stop();
  co_await sandboxes_.Stop();
  co_await provider_->Stop();
  co_await work_metrics_.Stop();
  co_await log_.Stop();
}

void Platform::AddRoutes(api::Frame& frame) {
  event_routes_.Add(frame);
  output_routes_.Add(frame);
  sandbox_routes_.Add(frame);
  run_routes_.Add(frame);
  session_routes_.Add(frame);
  build_routes_.Add(frame);
  terminal_routes_.Add(frame);
  api::AddPortRoutes(frame, sandboxes_, editors_, config_, port_);
  api::AddEditorRoutes(frame, {editors_, sandboxes_, manager_, config_, port_});
  api::AddWorkRoutes(frame, work_);
  api::AddRefreshRoute(frame, pull_request_watch_);
  api::AddSettingRoutes(frame, config_);
  api::AddChangeRoutes(frame, changes_);
  api::AddCheckoutRoutes(frame, kept_checkouts_);
  share_routes_.Add(frame);
  api::AddGitRoutes(frame, git_desk_);
  api::GithubServices github{github_, authors_, pull_requests_, config_};
  api::AddGithubRoutes(frame, github);
  api::AddWebhookRoutes(frame, github);
  api::AddGithubTokenRoutes(frame, authors_);
  mcp_.Add(frame);
}

void Platform::SetGauges() const {
  flow::Engine::Numbers runs = flow_.numbers();
  metrics_.AddGauge("caisson_flow_steps_running", "Steps of runs that this server does now.")
      .Set(static_cast<double>(runs.running));
  metrics_.AddGauge("caisson_event_streams", "Open streams of events.")
      .Set(static_cast<double>(log_.numbers().subscriptions));
  metrics_.AddGauge("caisson_git_operations_waiting", "Git operations that wait for a checkout.")
      .Set(static_cast<double>(locks_.depth()));
  CountBroker(metrics_, broker_.numbers());
  CountProviderKeys(metrics_, provider_->Keys());
  work::KeptCheckouts::Numbers kept = kept_checkouts_.numbers();
  CountCache(metrics_, "checkout", kept.hits, kept.misses);
}

}  // namespace caisson::cli

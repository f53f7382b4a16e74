// Sandboxes of another server that speaks the E2B API, for the work platform.
#include "base/log.h"
#include "sandbox/provider.h"
#include "sandbox/turns.h"
#include "sdk/control_client.h"
#include "sdk/tunnel.h"

namespace caisson::sandbox {
namespace {

using StringMap = std::map<std::string, std::string>;

// One API key serves everybody here, so whose a sandbox is travels with it.
constexpr const char* kOwner = "caisson_owner";

// Somebody else has begun to listen in the same sandbox.
constexpr std::chrono::minutes kListenPatience{3};
constexpr std::chrono::seconds kCloseTimeout{20};

ProviderInfo ToInfo(sdk::RemoteSandbox sandbox) {
  std::string owner = sandbox.metadata[kOwner];
  sandbox.metadata.erase(kOwner);
  return {.id = std::move(sandbox.id),
          .owner_id = std::move(owner),
          .state = std::move(sandbox.state),
          .template_id = std::move(sandbox.template_id),
          .metadata = std::move(sandbox.metadata),
          .started_at = sandbox.started_at,
          .ends_at = sandbox.ends_at};
}

class E2bProvider final : public Provider {
 public:
  E2bProvider(asio::any_io_executor executor, const Config& config)
      : executor_(executor),
        template_(config.e2b_template_id),
        tunnel_limits_{.connections = static_cast<size_t>(config.broker_max_connections)},
        turns_(executor, kListenPatience) {
    if (config.e2b_api_key.empty()) {
      LogWarn("sandboxes of E2B cannot be used: no e2b_api_key is set");
      return;
    }
    auto endpoint = sdk::Endpoint::Parse(config.e2b_api_url);
    if (!endpoint) {
      LogWarn("sandboxes of E2B cannot be used", {{"error", endpoint.error().message()}});
      return;
    }
    client_.emplace(
        sdk::ControlOptions{.endpoint = std::move(*endpoint), .api_key = config.e2b_api_key});
  }

  std::string name() const override { return "e2b"; }

  Task<void> Stop() override {
    TaskGroup closing(executor_);
    for (auto& [where, tunnel] : tunnels_) closing.Spawn("close a tunnel", tunnel->Close());
    co_await closing.Join(kCloseTimeout);
    tunnels_.clear();
  }

  Task<Result<ProviderInfo>> Create(ProviderOptions options) override {
    CO_TRY(CheckConfigured());
    sdk::NewSandbox request{
        .template_id = options.template_name.empty() ? template_ : options.template_name,
        .timeout = options.timeout,
        .metadata = std::move(options.metadata),
        .env = std::move(options.env),
        .allow_internet = options.allow_internet,
        .sleeps = options.sleeps,
        .idempotency_key = std::move(options.idempotency_key)};
    request.metadata[kOwner] = options.owner_id;
    CO_TRY_ASSIGN(auto created, co_await client_->Create(std::move(request)));
    co_return ToInfo(std::move(created));
  }

  Task<Result<ProviderInfo>> Get(std::string owner_id, std::string id) override {
    CO_TRY_ASSIGN(auto found, co_await Find(std::move(owner_id), std::move(id)));
    co_return ToInfo(std::move(found));
  }

  Task<Result<std::vector<ProviderInfo>>> List(std::string owner_id, StringMap metadata) override {
    CO_TRY(CheckConfigured());
    if (!owner_id.empty()) metadata[kOwner] = std::move(owner_id);
    CO_TRY_ASSIGN(auto found, co_await client_->List(std::move(metadata)));
    std::vector<ProviderInfo> list;
    for (sdk::RemoteSandbox& sandbox : found)
      if (sandbox.metadata.contains(kOwner)) list.push_back(ToInfo(std::move(sandbox)));
    co_return list;
  }

  Task<Status> Kill(std::string owner_id, std::string id) override {
    CO_TRY_ASSIGN(auto found, co_await Find(std::move(owner_id), std::move(id)));
    co_return co_await client_->Kill(std::move(found.id));
  }
  Task<Status> Pause(std::string owner_id, std::string id) override {
    CO_TRY_ASSIGN(auto found, co_await Find(std::move(owner_id), std::move(id)));
    co_return co_await client_->Pause(std::move(found.id));
  }
  Task<Status> Resume(std::string owner_id, std::string id, std::chrono::seconds timeout) override {
    CO_TRY_ASSIGN(auto found, co_await Find(std::move(owner_id), std::move(id)));
    CO_TRY(co_await client_->Connect(std::move(found.id), timeout));
    co_return Status();
  }
  Task<Status> SetTimeout(std::string owner_id, std::string id,
                          std::chrono::seconds timeout) override {
    CO_TRY_ASSIGN(auto found, co_await Find(std::move(owner_id), std::move(id)));
    co_return co_await client_->SetTimeout(std::move(found.id), timeout);
  }

  Task<Result<std::string>> Snapshot(std::string owner_id, std::string id,
                                     std::string name) override {
    CO_TRY_ASSIGN(auto found, co_await Find(std::move(owner_id), std::move(id)));
    co_return co_await client_->Snapshot(std::move(found.id), std::move(name));
  }
  Task<Status> DeleteSnapshot(std::string, std::string name) override {
    CO_TRY(CheckConfigured());
    Status deleted = co_await client_->DeleteTemplate(std::move(name));
    if (!deleted && deleted.error().code() == Code::kNotFound) co_return Status();
    co_return deleted;
  }

  Task<Result<sdk::EnvdClient>> Envd(std::string owner_id, std::string id) override {
    CO_TRY_ASSIGN(auto found, co_await Find(std::move(owner_id), std::move(id)));
    if (found.state == "paused")
      co_return Fail(Code::kFailedPrecondition, "sandbox '{}' is paused; resume it first",
                     found.id);
    co_return client_->Envd(found);
  }

  Task<Result<UniqueFd>> Listen(std::string owner_id, std::string id, uint16_t port) override {
    CO_TRY_ASSIGN(auto turn, co_await turns_.Take(id, "is being listened in"));
    // SECURITY: before anything of the one who listens now is touched.
    CO_TRY(co_await Envd(owner_id, id));
    std::erase_if(tunnels_, [](const auto& one) { return !one.second->is_open(); });
    if (auto old = tunnels_.extract({id, port})) co_await old.mapped()->Close();
    auto reach = [this, owner_id, id] { return Envd(owner_id, id); };
    auto tunnel = std::make_unique<sdk::Tunnel>(executor_, id, reach, port, tunnel_limits_);
    CO_TRY_ASSIGN(UniqueFd listener, co_await tunnel->Open());
    tunnels_[{id, port}] = std::move(tunnel);
    co_return listener;
  }
  bool Listens(const std::string& id, uint16_t port) const override {
    auto found = tunnels_.find({id, port});
    return found != tunnels_.end() && found->second->is_open();
  }

  std::string Host(const std::string& id, uint16_t port) const override {
    return client_ ? client_->Host(id, port) : "";
  }

  std::vector<sdk::ApiKeyUse> Keys() const override {
    return client_ ? client_->keys().Uses() : std::vector<sdk::ApiKeyUse>();
  }
  void OnKeyRefused(sdk::ApiKeys::Refused handler) override {
    if (client_) client_->keys().OnRefused(std::move(handler));
  }

 private:
  Status CheckConfigured() const {
    if (client_) return {};
    return Fail(Code::kUnavailable,
                "backend_not_configured: sandboxes of E2B are not configured; set e2b_api_key and "
                "e2b_api_url");
  }

  // SECURITY: a sandbox of another owner, or one that is not ours, looks like one that does not
  // exist.
  Task<Result<sdk::RemoteSandbox>> Find(std::string owner_id, std::string id) {
    CO_TRY(CheckConfigured());
    CO_TRY_ASSIGN(auto found, co_await client_->Get(id));
    auto owner = found.metadata.find(kOwner);
    if (owner == found.metadata.end() || owner->second != owner_id)
      co_return Fail(Code::kNotFound, "sandbox '{}' does not exist or has ended", id);
    co_return found;
  }

  asio::any_io_executor executor_;
  std::string template_;
  std::optional<sdk::ControlClient> client_;
  const sdk::TunnelLimits tunnel_limits_;
  Turns turns_;
  std::map<std::pair<std::string, uint16_t>, std::unique_ptr<sdk::Tunnel>> tunnels_;
};

}  // namespace

std::unique_ptr<Provider> MakeE2bProvider(asio::any_io_executor executor, const Config& config) {
  return std::make_unique<E2bProvider>(std::move(executor), config);
}

}  // namespace caisson::sandbox

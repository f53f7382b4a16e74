#include "git/broker.h"

#include <set>

#include "base/log.h"
#include "base/text.h"
#include "git/broker_session.h"
#include "http/server.h"

namespace caisson::git {

class Broker::Impl {
 public:
  Impl(asio::any_io_executor executor, const Config& config, std::vector<ModelRoute> models)
      : executor_(std::move(executor)), grace_(config.shutdown_grace_ms), home_(config.github_url) {
    while (home_.ends_with('/')) home_.pop_back();
    for (std::string_view one : Split(config.git_private_hosts, ','))
      AddPrivateHost(std::string(Trim(one)));
    context_->limits = {.connect_timeout = std::chrono::milliseconds(config.github_timeout_ms),
                        .stall_timeout = std::chrono::milliseconds(config.broker_stall_timeout_ms),
                        .max_header_bytes = static_cast<size_t>(config.http_max_header_bytes)};
    context_->ssh = SshAccessOf(config);
    context_->models = std::move(models);
    // SECURITY: everybody inside may connect, so one sandbox gets only so much of the server.
    options_ = {.max_connections = static_cast<size_t>(config.broker_max_connections),
                .max_header_bytes = static_cast<size_t>(config.http_max_header_bytes),
                .header_timeout = std::chrono::milliseconds(config.http_header_timeout_ms),
                .idle_timeout = std::chrono::milliseconds(config.broker_idle_timeout_ms),
                .body_stall_timeout = std::chrono::milliseconds(config.broker_stall_timeout_ms)};
  }

  caisson::Status Open(const std::string& sandbox_id, UniqueFd listener, Grant grant) {
    TRY_ASSIGN(Origin origin, ParseOrigin(grant.repository.base_url));
    // SECURITY: somebody may have named any host. The server stands where sandboxes cannot reach,
    // so it must not connect there on their behalf; its settings are the operator's word.
    origin.internet_only =
        grant.repository.base_url != home_ && !private_hosts_.contains(ToLower(origin.host_port));
    // Shared with the server's connections, which may end after it.
    auto session = std::make_shared<BrokerSession>(context_, std::move(grant), std::move(origin));
    auto server = std::make_unique<http::Server>(
        executor_, options_,
        [session](http::Exchange& exchange) { return session->Serve(exchange); });
    TRY(server->Adopt(std::move(listener)));
    servers_[sandbox_id] = std::move(server);
    return {};
  }

  Task<void> Stop() {
    auto servers = std::move(servers_);
    servers_.clear();
    for (auto& [id, server] : servers) co_await server->Stop(grace_);
  }

  void AddPrivateHost(const std::string& host) {
    if (host.empty()) return;
    auto origin = ParseOrigin("https://" + host);
    if (origin && origin->path.empty())
      private_hosts_.insert(ToLower(origin->host_port));
    else
      LogWarn("git_private_hosts names something that is no HOST or HOST:PORT", {{"host", host}});
  }

  asio::any_io_executor executor_;
  std::chrono::milliseconds grace_;
  std::set<std::string> private_hosts_;  // "host:port"
  std::string home_;  // as ParseRepository() gives it for repositories of github_url
  http::ServerOptions options_;
  std::shared_ptr<BrokerContext> context_ = std::make_shared<BrokerContext>();
  std::map<std::string, std::unique_ptr<http::Server>> servers_;
};

Broker::Broker(asio::any_io_executor executor, const Config& config, std::vector<ModelRoute> models)
    : impl_(std::make_unique<Impl>(std::move(executor), config, std::move(models))) {}
Broker::~Broker() = default;

Task<void> Broker::Stop() { return impl_->Stop(); }

Status Broker::Open(const std::string& sandbox_id, UniqueFd listener, Grant grant) {
  return impl_->Open(sandbox_id, std::move(listener), std::move(grant));
}

void Broker::Close(const std::string& sandbox_id) { impl_->servers_.erase(sandbox_id); }

bool Broker::IsOpen(const std::string& sandbox_id) const {
  return impl_->servers_.contains(sandbox_id);
}

std::string Broker::RemoteUrl(const Repository& repository) {
  return fmt::format("http://127.0.0.1:{}/{}.git", kPort, repository.full_name());
}

std::string Broker::ModelUrl(const std::string& route) {
  return fmt::format("http://127.0.0.1:{}/model/{}", kPort, route);
}

Broker::Numbers Broker::numbers() const {
  Numbers numbers = impl_->context_->numbers;
  numbers.sandboxes = impl_->servers_.size();
  for (const auto& [id, server] : impl_->servers_) numbers.connections += server->connections();
  return numbers;
}

}  // namespace caisson::git

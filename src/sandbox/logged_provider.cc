// Says every call to a provider in the log: what is asked at level debug, what changes something at
// level info.
#include "base/log.h"
#include "sandbox/provider.h"

namespace caisson::sandbox {
namespace {

using StringMap = std::map<std::string, std::string>;

class Timed {
 public:
  Timed(std::string provider, std::string_view op, std::string id)
      : provider_(std::move(provider)), op_(op), id_(std::move(id)) {}

  template <class T>
  void Done(const T& answer, LogLevel level, std::string_view id = {}) const {
    auto took = std::chrono::steady_clock::now() - begun_;
    Log(level, "the provider of sandboxes was called",
        {{"op", op_},
         {"provider", provider_},
         {"sandbox_id", id.empty() ? std::string_view(id_) : id},
         {"outcome", answer ? std::string_view("ok") : CodeName(answer.error().code())},
         {"duration_ms", std::chrono::duration_cast<std::chrono::milliseconds>(took).count()}});
  }

 private:
  std::string provider_;
  std::string_view op_;
  std::string id_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

template <class T>
Task<T> Said(Timed call, LogLevel level, Task<T> work) {
  T answer = co_await std::move(work);
  call.Done(answer, level);
  co_return std::move(answer);
}

class LoggedProvider final : public Provider {
 public:
  explicit LoggedProvider(std::unique_ptr<Provider> inner) : inner_(std::move(inner)) {}

  std::string name() const override { return inner_->name(); }
  Task<void> Stop() override { return inner_->Stop(); }

  Task<Result<ProviderInfo>> Create(ProviderOptions options) override {
    Timed call = Begin("create", "");
    auto made = co_await inner_->Create(std::move(options));
    call.Done(made, LogLevel::kInfo, made ? made->id : "");
    co_return made;
  }
  Task<Result<ProviderInfo>> Get(std::string owner_id, std::string id) override {
    return Said(Begin("get", id), LogLevel::kDebug, inner_->Get(std::move(owner_id), id));
  }
  Task<Result<std::vector<ProviderInfo>>> List(std::string owner_id, StringMap metadata) override {
    return Said(Begin("list", ""), LogLevel::kDebug,
                inner_->List(std::move(owner_id), std::move(metadata)));
  }
  Task<std::string> EndReason(std::string owner_id, std::string id) override {
    return inner_->EndReason(std::move(owner_id), std::move(id));
  }
  Task<Status> Kill(std::string owner_id, std::string id) override {
    return Said(Begin("kill", id), LogLevel::kInfo, inner_->Kill(std::move(owner_id), id));
  }
  Task<Status> Pause(std::string owner_id, std::string id) override {
    return Said(Begin("pause", id), LogLevel::kInfo, inner_->Pause(std::move(owner_id), id));
  }
  Task<Status> Resume(std::string owner_id, std::string id, std::chrono::seconds timeout) override {
    return Said(Begin("resume", id), LogLevel::kInfo,
                inner_->Resume(std::move(owner_id), id, timeout));
  }
  Task<Status> SetTimeout(std::string owner_id, std::string id,
                          std::chrono::seconds timeout) override {
    return Said(Begin("set_timeout", id), LogLevel::kInfo,
                inner_->SetTimeout(std::move(owner_id), id, timeout));
  }
  Task<Result<std::optional<std::chrono::milliseconds>>> CpuTime(std::string owner_id,
                                                                 std::string id) override {
    return Said(Begin("cpu_time", id), LogLevel::kDebug, inner_->CpuTime(std::move(owner_id), id));
  }
  Task<Result<std::string>> Snapshot(std::string owner_id, std::string id,
                                     std::string snapshot) override {
    return Said(Begin("snapshot", id), LogLevel::kInfo,
                inner_->Snapshot(std::move(owner_id), id, std::move(snapshot)));
  }
  Task<Status> DeleteSnapshot(std::string owner_id, std::string snapshot) override {
    return Said(Begin("delete_snapshot", ""), LogLevel::kInfo,
                inner_->DeleteSnapshot(std::move(owner_id), std::move(snapshot)));
  }
  Task<Result<sdk::EnvdClient>> Envd(std::string owner_id, std::string id) override {
    return Said(Begin("connect", id), LogLevel::kDebug, inner_->Envd(std::move(owner_id), id));
  }
  Task<Result<UniqueFd>> Listen(std::string owner_id, std::string id, uint16_t port) override {
    return Said(Begin("listen", id), LogLevel::kDebug,
                inner_->Listen(std::move(owner_id), id, port));
  }
  bool Listens(const std::string& id, uint16_t port) const override {
    return inner_->Listens(id, port);
  }
  std::string Workspace(const std::string& id) const override { return inner_->Workspace(id); }
  std::string Host(const std::string& id, uint16_t port) const override {
    return inner_->Host(id, port);
  }
  std::vector<sdk::ApiKeyUse> Keys() const override { return inner_->Keys(); }
  void OnKeyRefused(sdk::ApiKeys::Refused handler) override {
    inner_->OnKeyRefused(std::move(handler));
  }

 private:
  Timed Begin(std::string_view op, std::string id) const { return {name(), op, std::move(id)}; }

  std::unique_ptr<Provider> inner_;
};

}  // namespace

std::unique_ptr<Provider> LogCalls(std::unique_ptr<Provider> provider) {
  return std::make_unique<LoggedProvider>(std::move(provider));
}

}  // namespace caisson::sandbox

// Sandboxes of this server, for the work platform.
#include <algorithm>

#include "base/encoding.h"
#include "http/client.h"
#include "sandbox/envd_call.h"
#include "sandbox/manager.h"
#include "sandbox/provider.h"

namespace caisson::sandbox {
namespace {

constexpr std::chrono::milliseconds kConnectTimeout{10'000};
constexpr std::chrono::milliseconds kEndTimeout{10'000}, kEndInterval{50};

// A connection into a sandbox that is reset when the sandbox stops running: a command that was
// running when its sandbox was paused must not keep its caller waiting for ever.
class TiedStream final : public http::Stream {
 public:
  TiedStream(std::unique_ptr<http::Stream> stream, Manager& manager, std::string id)
      : stream_(std::move(stream)), manager_(manager), id_(std::move(id)) {
    // Also called at once, if it has stopped already.
    handle_ = manager_.SubscribeGone(id_, [this] { stream_->Close(/*reset=*/true); });
  }
  ~TiedStream() override { manager_.UnsubscribeGone(id_, handle_); }

  Task<Result<size_t>> Read(std::span<char> buffer) override { return stream_->Read(buffer); }
  Result<size_t> TryRead(std::span<char> buffer) override { return stream_->TryRead(buffer); }
  Task<Status> Write(std::string_view first, std::string_view second,
                     std::string_view third) override {
    return stream_->Write(first, second, third);
  }
  Task<Status> SendFile(int fd, uint64_t offset, uint64_t size) override {
    return stream_->SendFile(fd, offset, size);
  }
  Task<Status> WaitReadable() override { return stream_->WaitReadable(); }
  Task<Status> WaitWritable() override { return stream_->WaitWritable(); }
  Task<Status> WaitBroken() override { return stream_->WaitBroken(); }
  Task<void> ShutdownWrite() override { return stream_->ShutdownWrite(); }
  void Cancel() override { stream_->Cancel(); }
  void Close(bool reset) override { stream_->Close(reset); }
  int PlainSocket() const override { return stream_->PlainSocket(); }
  std::string PeerAddress() const override { return stream_->PeerAddress(); }
  asio::any_io_executor executor() override { return stream_->executor(); }

 private:
  std::unique_ptr<http::Stream> stream_;
  Manager& manager_;
  std::string id_;
  Manager::GoneId handle_ = 0;
};

class LocalTransport final : public sdk::Transport {
 public:
  LocalTransport(Manager& manager, const Info& info) : manager_(manager), id_(info.id) {
    if (!info.inside_token.empty()) headers_.Set("X-Access-Token", info.inside_token);
  }

  Task<Result<std::unique_ptr<http::ClientConnection>>> Connect() override {
    auto stream =
        co_await WithDeadline(kConnectTimeout, "connecting to the sandbox", Open(manager_, id_));
    if (!stream)
      co_return Fail(Code::kUnavailable, "the sandbox cannot be reached: {}",
                     stream.error().message());
    co_return std::make_unique<http::ClientConnection>(
        std::make_unique<TiedStream>(std::move(*stream), manager_, id_));
  }
  http::Headers RequestHeaders() const override { return headers_; }

 private:
  static Task<Result<std::unique_ptr<http::Stream>>> Open(Manager& manager, std::string id) {
    CO_TRY_ASSIGN(UniqueFd socket, co_await manager.Dial(std::move(id)));
    co_return co_await ConnectEnvd(std::move(socket));
  }

  Manager& manager_;
  std::string id_;
  http::Headers headers_{{"Host", "localhost"}};
};

// Two creates with the same key must ask for the same.
std::string HashOf(const ProviderOptions& options) {
  std::string text = options.template_name + '\0' + std::to_string(options.timeout.count());
  if (options.sleeps) text += " sleeps";
  for (const StringMap* map : {&options.metadata, &options.env})
    for (const auto& [name, value] : *map) text += '\0' + name + '=' + value;
  return HexEncode(Sha256(text));
}

ProviderInfo ToInfo(const Info& info) {
  return {.id = info.id,
          .owner_id = info.key_id,
          .state = info.state == State::kPaused ? "paused" : "running",
          .template_id = info.template_id,
          .metadata = info.metadata,
          .started_at = info.started_at,
          .ends_at = info.end_at,
          .last_traffic_at = info.active_at};
}

class LocalProvider final : public Provider {
 public:
  LocalProvider(Manager& manager, const Config& config) : manager_(manager), config_(config) {}

  std::string name() const override { return "local"; }

  Task<Result<ProviderInfo>> Create(ProviderOptions options) override {
    CreateOptions create;
    create.key_id = options.owner_id;
    create.template_name =
        options.template_name.empty() ? config_.task_template : options.template_name;
    create.timeout = std::min(options.timeout, manager_.LongestTimeout(options.owner_id));
    create.allow_internet = options.allow_internet;
    create.lifecycle = {.auto_pause = options.sleeps, .auto_resume = options.sleeps};
    create.idempotency_key = options.idempotency_key;
    if (!create.idempotency_key.empty()) create.request_hash = HashOf(options);
    create.metadata = std::move(options.metadata);
    create.env = std::move(options.env);
    CO_TRY_ASSIGN(Info info, co_await manager_.Create(std::move(create)));
    co_return ToInfo(info);
  }

  Task<Result<ProviderInfo>> Get(std::string owner_id, std::string id) override {
    CO_TRY_ASSIGN(Info info, manager_.Get(owner_id, id));
    co_return ToInfo(info);
  }

  Task<Result<std::vector<ProviderInfo>>> List(std::string owner_id, StringMap metadata) override {
    ListFilter filter;
    filter.of_all_keys = owner_id.empty();
    filter.key_id = std::move(owner_id);
    filter.metadata = std::move(metadata);
    std::vector<ProviderInfo> list;
    for (const Info& info : manager_.List(filter)) list.push_back(ToInfo(info));
    co_return list;
  }

  Task<std::string> EndReason(std::string owner_id, std::string id) override {
    // It is out of traffic before its end is written down.
    auto deadline = std::chrono::steady_clock::now() + kEndTimeout;
    for (;;) {
      auto detail = co_await manager_.Inspect(owner_id, id);
      if (!detail || detail->state == "killed") co_return detail ? detail->reason : "";
      if (std::chrono::steady_clock::now() > deadline) co_return "";
      co_await SleepFor(kEndInterval);
    }
  }

  Task<Status> Kill(std::string owner_id, std::string id) override {
    return manager_.Kill(std::move(owner_id), std::move(id));
  }
  Task<Status> Pause(std::string owner_id, std::string id) override {
    return manager_.Pause(std::move(owner_id), std::move(id), /*memory=*/true);
  }
  Task<Status> Resume(std::string owner_id, std::string id, std::chrono::seconds timeout) override {
    ResumeOptions options{.timeout = std::min(timeout, manager_.LongestTimeout(owner_id))};
    CO_TRY(co_await manager_.Connect(std::move(owner_id), std::move(id), options));
    co_return Status();
  }
  Task<Status> SetTimeout(std::string owner_id, std::string id,
                          std::chrono::seconds timeout) override {
    CO_TRY(co_await manager_.SetTimeout(std::move(owner_id), std::move(id), timeout,
                                        /*only_extend=*/false));
    co_return Status();
  }

  Task<Result<std::optional<std::chrono::milliseconds>>> CpuTime(std::string owner_id,
                                                                 std::string id) override {
    CO_TRY_ASSIGN(engine::Usage usage, co_await manager_.Usage(std::move(owner_id), std::move(id)));
    co_return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::nanoseconds(usage.cpu_ns));
  }

  Task<Result<std::string>> Snapshot(std::string owner_id, std::string id,
                                     std::string name) override {
    CO_TRY_ASSIGN(store::SnapshotRow made,
                  co_await manager_.MakeSnapshot(std::move(owner_id), std::move(id),
                                                 {.name = std::move(name), .once = true}));
    co_return made.id;
  }
  Task<Status> DeleteSnapshot(std::string owner_id, std::string name) override {
    Status deleted = co_await manager_.DeleteSnapshot(std::move(owner_id), std::move(name));
    if (!deleted && deleted.error().code() == Code::kNotFound) co_return Status();
    co_return deleted;
  }

  Task<Result<sdk::EnvdClient>> Envd(std::string owner_id, std::string id) override {
    CO_TRY_ASSIGN(Info info, manager_.Get(owner_id, id));
    if (info.state == State::kPaused)
      co_return Fail(Code::kFailedPrecondition, "sandbox '{}' is paused; resume it first", id);
    co_return sdk::EnvdClient(std::make_unique<LocalTransport>(manager_, info));
  }

  Task<Result<UniqueFd>> Listen(std::string owner_id, std::string id, uint16_t port) override {
    return manager_.Listen(std::move(owner_id), std::move(id), port);
  }
  std::string Workspace(const std::string& id) const override { return manager_.Workspace(id); }
  std::string Host(const std::string& id, uint16_t port) const override {
    return fmt::format("{}-{}.{}", port, id, config_.domain);
  }

 private:
  Manager& manager_;
  const Config config_;
};

}  // namespace

std::unique_ptr<Provider> MakeLocalProvider(Manager& manager, const Config& config) {
  return std::make_unique<LocalProvider>(manager, config);
}

}  // namespace caisson::sandbox

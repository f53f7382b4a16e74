#include "sandbox/manager.h"

#include "base/log.h"
#include "sandbox/manager_impl.h"

namespace caisson::sandbox {

store::SandboxEvent MakeEvent(const std::string& id, std::string type, std::string message,
                              StringMap fields, std::string level) {
  return {.sandbox_id = id,
          .at = Now(),
          .type = std::move(type),
          .level = std::move(level),
          .message = std::move(message),
          .fields = std::move(fields)};
}

Manager::Impl::Impl(asio::any_io_executor executor, const Config& config, engine::Engine& engine,
                    store::Store& store, const TemplateCatalog& templates, std::string secret,
                    Envd& envd)
    : store_(store),
      config_(config),
      limiter_(config_),
      executor_(executor),
      engine_(engine),
      templates_(templates),
      secret_(std::move(secret)),
      envd_(envd),
      save_timeout_(config.save_timeout_ms),
      expiry_(
          executor, [this](std::string id) { OnExpired(id); },
          [this](const std::string& id, std::chrono::nanoseconds by) { OnClockSet(id, by); }),
      sampler_(engine, registry_, config,
               [this](store::SandboxEvent event) {
                 LogWarn("a sandbox reached a limit",
                         {{"sandbox", event.sandbox_id}, {"event", event.type}});
                 background_.Spawn("alarm", WriteEvent(std::move(event)));
               }),
      turns_(executor, save_timeout_),
      pool_changed_(executor),
      operations_(executor),
      background_(executor),
      sockets_(engine, background_, static_cast<size_t>(config.spare_sockets),
               std::chrono::milliseconds(config.envd_timeout_ms)) {
  engine_.OnExit([this](std::string id, engine::ExitReason reason) { OnExit(id, reason); });
  engine_.OnBlocked([this](engine::Blocked blocked) { OnBlocked(std::move(blocked)); });
  engine_.OnHeld([this](std::string id, bool held, int64_t free) { OnHeld(id, held, free); });
}

Manager::Impl::~Impl() {
  engine_.OnExit({});
  engine_.OnBlocked({});
  engine_.OnHeld({});
}

Task<Status> Manager::Impl::Start() {
  CO_TRY_ASSIGN(pool_, Pool::Parse(config_.warm_pool, templates_));
  CO_TRY(co_await limiter_.Load(store_));
  CO_TRY_ASSIGN(auto capabilities, co_await engine_.GetCapabilities());
  host_open_files_ = capabilities.open_files;
  CO_TRY(co_await Adopt());
  if (!pool_.empty()) background_.Spawn("pool", KeepPool());
  background_.Spawn("expiry", expiry_.Loop());
  background_.Spawn("sampler", sampler_.Loop());
  if (config_.idle_pause_s > 0) background_.Spawn("idle", WatchIdle());
  co_return Status();
}

Task<void> Manager::Impl::Stop() {
  stopping_ = true;
  if (config_.on_shutdown == "pause")
    co_await PauseAll("shutdown", std::chrono::steady_clock::now() + save_timeout_);
  co_await background_.Stop();
  // They have no row: the next server would only destroy them.
  while (auto ready = pool_.TakeAny()) Discard(std::move(ready));
  // A creation or an ending that is cut here is set right by the next Start().
  std::chrono::milliseconds grace(config_.shutdown_grace_ms);
  if (!co_await operations_.Join(grace)) {
    LogWarn("stopping while sandboxes are being created or ended",
            {{"operations", operations_.size()}});
    co_await operations_.Stop();
  }
}

std::shared_ptr<Record> Manager::Impl::FindAny(const std::string& id) const {
  auto record = registry_.Find(id);
  if (auto it = paused_.find(id); !record && it != paused_.end()) record = it->second;
  return record;
}

std::string Manager::Impl::Workspace(const std::string& id) const {
  auto record = FindAny(id);
  const Template* from = record ? templates_.Find(record->row.template_id) : nullptr;
  return from ? from->workspace : "";
}

Result<std::shared_ptr<Record>> Manager::Impl::FindOwned(const std::string& key_id,
                                                         const std::string& id) const {
  // SECURITY: a sandbox of another key looks exactly like one that does not exist.
  auto record = FindAny(id);
  if (!record || record->row.key_id != key_id)
    return Fail(Code::kNotFound, "sandbox '{}' does not exist or has ended", id);
  return record;
}

std::vector<Info> Manager::Impl::List(const ListFilter& filter) const {
  std::vector<Info> found;
  std::string template_id;
  if (!filter.template_name.empty()) {
    const Template* wanted = templates_.Find(filter.template_name);
    if (!wanted) return found;
    template_id = wanted->id;
  }
  auto look = [&](const Record& record) {
    const store::SandboxRow& row = record.row;
    bool matches = (filter.of_all_keys || row.key_id == filter.key_id) &&
                   (template_id.empty() || row.template_id == template_id) &&
                   (!filter.started_after || row.started_at >= *filter.started_after) &&
                   std::all_of(filter.metadata.begin(), filter.metadata.end(), [&](auto& wanted) {
                     auto it = row.metadata.find(wanted.first);
                     return it != row.metadata.end() && it->second == wanted.second;
                   });
    if (matches) found.push_back(MakeInfo(record));
    return false;
  };
  if (filter.running) registry_.ForEach(look);
  if (filter.paused)
    for (const auto& [id, record] : paused_) look(*record);
  std::sort(found.begin(), found.end(), [](const Info& a, const Info& b) {
    return a.started_at != b.started_at ? a.started_at > b.started_at : a.id < b.id;
  });
  if (filter.ascending) std::reverse(found.begin(), found.end());
  return found;
}

Task<Result<std::vector<Sample>>> Manager::Impl::Metrics(std::string key_id, std::string id,
                                                         std::optional<Time> start,
                                                         std::optional<Time> end) {
  CO_TRY_ASSIGN(auto record, FindOwned(key_id, id));
  if (record->history.empty() && record->running) {
    if (Status measured = co_await sampler_.Measure({id}); !measured) {
      LogError("a sandbox could not be measured",
               {{"sandbox", id}, {"error", measured.error().message()}});
      co_return Fail(Code::kUnavailable, "the sandbox could not be measured; try again later");
    }
  }
  std::vector<Sample> samples;
  auto add = [&](const Sample& sample) {
    if ((!start || sample.usage.at >= *start) && (!end || sample.usage.at <= *end))
      samples.push_back(sample);
  };
  // Means stand for the time of which there are no samples any more.
  if ((start || end) && !record->history.empty())
    for (const Sample& mean : record->means.all())
      if (mean.usage.at < record->history.front().usage.at) add(mean);
  for (const Sample& sample : record->history) add(sample);
  co_return samples;
}

Task<Result<engine::Usage>> Manager::Impl::Usage(std::string key_id, std::string id) {
  CO_TRY_ASSIGN(auto record, FindOwned(key_id, id));
  if (!record->running) co_return Fail(Code::kFailedPrecondition, "sandbox '{}' does not run", id);
  CO_TRY(co_await sampler_.Measure({id}));
  if (record->history.empty())
    co_return Fail(Code::kUnavailable, "sandbox '{}' could not be measured", id);
  co_return record->history.back().usage;
}

Task<Result<std::vector<store::SandboxEvent>>> Manager::Impl::Events(std::string key_id,
                                                                     std::string id,
                                                                     store::EventQuery query) {
  if (auto live = FindOwned(key_id, id); !live) {
    CO_TRY_ASSIGN(auto row, co_await store_.GetSandbox(id));
    if (!row || row->key_id != key_id)
      co_return Fail(Code::kNotFound, "sandbox '{}' does not exist", id);
  }
  co_return co_await store_.ListEvents(std::move(id), std::move(query));
}

Task<Result<UniqueFd>> Manager::Impl::Dial(std::string id) {
  auto record = registry_.Find(id);
  if (!record) co_return Fail(Code::kNotFound, "sandbox {} is not running", id);
  co_return co_await sockets_.Take(std::move(record));
}

Task<Result<UniqueFd>> Manager::Impl::Listen(std::string key_id, std::string id, uint16_t port) {
  CO_TRY_ASSIGN(auto record, FindOwned(key_id, id));
  if (!record->running) co_return Fail(Code::kFailedPrecondition, "sandbox {} does not run", id);
  // Closed to the outside before it is open to the inside, so that there is no moment between.
  bool added = record->route.private_ports.insert(port).second;
  auto socket = co_await engine_.Listen(id, port);
  if (!socket && added) record->route.private_ports.erase(port);
  co_return socket;
}

// ---- the face ----------------------------------------------------------------------------------

Manager::Manager(asio::any_io_executor executor, const Config& config, engine::Engine& engine,
                 store::Store& store, const TemplateCatalog& templates, std::string secret,
                 Envd& envd)
    : impl_(std::make_unique<Impl>(std::move(executor), config, engine, store, templates,
                                   std::move(secret), envd)) {}
Manager::~Manager() = default;

Task<Status> Manager::Start() { return impl_->Start(); }
Task<void> Manager::Stop() { return impl_->Stop(); }
Task<Result<Info>> Manager::Create(CreateOptions options) {
  return impl_->Create(std::move(options));
}
Result<Info> Manager::Get(const std::string& key_id, const std::string& id) const {
  TRY_ASSIGN(auto record, impl_->FindOwned(key_id, id));
  return MakeInfo(*record);
}
std::string Manager::Workspace(const std::string& id) const { return impl_->Workspace(id); }
std::vector<Info> Manager::List(const ListFilter& filter) const { return impl_->List(filter); }
Task<Status> Manager::Kill(std::string key_id, std::string id) {
  return impl_->Kill(std::move(key_id), std::move(id));
}
Task<Result<Info>> Manager::SetTimeout(std::string key_id, std::string id,
                                       std::chrono::seconds timeout, bool only_extend) {
  return impl_->SetTimeout(std::move(key_id), std::move(id), timeout, only_extend);
}
Task<Status> Manager::Pause(std::string key_id, std::string id, bool memory, bool healthy) {
  return impl_->PauseOwned(std::move(key_id), std::move(id), memory, healthy);
}
Task<Result<Connected>> Manager::Connect(std::string key_id, std::string id,
                                         ResumeOptions options) {
  return impl_->Connect(std::move(key_id), std::move(id), options);
}
Task<Result<Info>> Manager::Resume(std::string key_id, std::string id, ResumeOptions options) {
  return impl_->Resume(std::move(key_id), std::move(id), options);
}
Task<Result<store::SnapshotRow>> Manager::MakeSnapshot(std::string key_id, std::string id,
                                                       SnapshotOptions options) {
  return impl_->MakeSnapshot(std::move(key_id), std::move(id), std::move(options));
}
std::vector<store::SnapshotRow> Manager::ListSnapshots(const SnapshotFilter& filter) const {
  return impl_->ListSnapshots(filter);
}
Task<Status> Manager::DeleteSnapshot(std::string key_id, std::string name) {
  return impl_->DeleteSnapshot(std::move(key_id), std::move(name));
}
Task<Result<std::vector<Result<Info>>>> Manager::Fork(std::string key_id, std::string id,
                                                      std::chrono::seconds timeout, int64_t count) {
  return impl_->Fork(std::move(key_id), std::move(id), timeout, count);
}
Task<Drained> Manager::Drain() { return impl_->Drain(); }
void Manager::EndDrain() { impl_->EndDrain(); }
Task<Status> Manager::SetNetwork(std::string key_id, std::string id, bool allow_internet,
                                 std::string as_requested_json) {
  return impl_->SetNetwork(std::move(key_id), std::move(id), allow_internet,
                           std::move(as_requested_json));
}
Task<Result<std::vector<Sample>>> Manager::Metrics(std::string key_id, std::string id,
                                                   std::optional<Time> start,
                                                   std::optional<Time> end) {
  return impl_->Metrics(std::move(key_id), std::move(id), start, end);
}
Task<Result<engine::Usage>> Manager::Usage(std::string key_id, std::string id) {
  return impl_->Usage(std::move(key_id), std::move(id));
}
Task<Result<std::string>> Manager::FindNode(std::string key_id, std::string id) {
  return impl_->store_.FindNode(std::move(key_id), std::move(id));
}
Task<Result<std::vector<store::SandboxEvent>>> Manager::Events(std::string key_id, std::string id,
                                                               store::EventQuery query) {
  return impl_->Events(std::move(key_id), std::move(id), std::move(query));
}
Task<Result<std::vector<store::TemplateUse>>> Manager::TemplateUse() {
  return impl_->store_.ListTemplateUse();
}

const Route* Manager::FindRoute(std::string_view id) const {
  auto record = impl_->registry_.Find(id);
  if (!record) return nullptr;
  record->active_at = std::chrono::steady_clock::now();
  return &record->route;  // the registry still holds it until the next await
}
const Route* Manager::FindSleeper(std::string_view id) const {
  auto record = impl_->FindSleeper(id);
  return record ? &record->route : nullptr;
}
Task<Status> Manager::Wake(std::string id) { return impl_->Wake(std::move(id)); }
void Manager::ForEachRoute(const std::function<bool(const Route&)>& until_true) const {
  bool done = false;
  impl_->registry_.ForEach([&](const Record& record) {
    return done = !record.route.access_token.empty() && until_true(record.route);
  });
  for (auto it = impl_->paused_.begin(); !done && it != impl_->paused_.end(); ++it) {
    const Route& route = it->second->route;
    done = !route.access_token.empty() && FindSleeper(it->first) && until_true(route);
  }
}
Task<Result<UniqueFd>> Manager::Dial(std::string id) { return impl_->Dial(std::move(id)); }
Task<Result<UniqueFd>> Manager::Listen(std::string key_id, std::string id, uint16_t port) {
  return impl_->Listen(std::move(key_id), std::move(id), port);
}
Manager::GoneId Manager::SubscribeGone(const std::string& id, std::function<void()> gone) {
  return impl_->registry_.Subscribe(id, std::move(gone));
}
void Manager::UnsubscribeGone(const std::string& id, GoneId handle) {
  impl_->registry_.Unsubscribe(id, handle);
}
void Manager::ReportUnresponsive(const std::string& id, std::string reason) {
  impl_->ReportUnresponsive(id, std::move(reason));
}
bool Manager::StandsStill(const std::string& id) const { return impl_->StandsStill(id); }
Task<Result<Info>> Manager::SetLimits(std::string key_id, std::string id, LimitOptions limits) {
  return impl_->SetLimits(std::move(key_id), std::move(id), limits);
}
Task<Result<Detail>> Manager::Inspect(std::string key_id, std::string id) {
  return impl_->Inspect(std::move(key_id), std::move(id));
}
Task<Result<Diagnosis>> Manager::Diagnose(std::string key_id, std::string id) {
  return impl_->Diagnose(std::move(key_id), std::move(id));
}
Task<Result<StorageUse>> Manager::Storage() { return impl_->Storage(); }
Status Manager::Admit(const std::string& key_id) { return impl_->limiter_.TakeRequest(key_id); }
Task<Status> Manager::ReloadKeyLimits() { return impl_->limiter_.Load(impl_->store_); }
std::chrono::seconds Manager::LongestTimeout(const std::string& key_id) const {
  return impl_->limiter_.LongestTimeout(key_id);
}

std::chrono::seconds Manager::RetryAfter(const std::string& key_id) const {
  return impl_->limiter_.RetryAfter(key_id);
}
PoolNumbers Manager::pool() const {
  const Pool& pool = impl_->pool_;
  return {pool.ready(), pool.hits(), pool.misses()};
}
size_t Manager::running() const { return impl_->registry_.size(); }
size_t Manager::paused() const { return impl_->paused_.size(); }
StorageUse Manager::saved() const { return impl_->SavedUse(); }

}  // namespace caisson::sandbox

// Making a sandbox: check, ask the engine, write the row, then let traffic in. Whatever fails, the
// steps before it are undone.
#include <sys/statvfs.h>

#include <boost/json.hpp>

#include "base/id.h"
#include "base/log.h"
#include "engine/trust.h"
#include "sandbox/egress.h"
#include "sandbox/manager_impl.h"
#include "sandbox/secrets.h"
#include "sandbox/shield.h"

namespace caisson::sandbox {
namespace {

namespace json = boost::json;

size_t SizeOf(const StringMap& map) {
  size_t size = 0;
  for (const auto& [key, value] : map) size += key.size() + value.size();
  return size;
}

Status CheckSize(std::string_view name, const StringMap& map, int64_t max_bytes) {
  if (max_bytes > 0 && SizeOf(map) > static_cast<size_t>(max_bytes))
    return Fail(Code::kInvalidArgument, "{} too large: {} bytes, at most {} are allowed", name,
                SizeOf(map), max_bytes);
  return {};
}

Status CheckEnv(const StringMap& env) {
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos)
      return Fail(Code::kInvalidArgument, "'{}' cannot be the name of an environment variable",
                  name);
    if (value.find('\0') != std::string::npos)
      return Fail(Code::kInvalidArgument, "the environment variable {} contains a NUL character",
                  name);
  }
  return {};
}

// The name to show: what was asked for if that is an alias, else the template's first one.
std::string AliasOf(const Template& from, std::string_view asked) {
  std::string_view name = asked.substr(0, asked.find(':'));
  for (const std::string& alias : from.aliases)
    if (alias == name) return alias;
  return from.aliases.empty() ? std::string() : from.aliases.front();
}

// The template of a snapshot, with the snapshot's limits.
Template LimitedAs(Template from, const store::SnapshotRow& origin) {
  from.cpus = origin.cpus;
  from.memory_mb = origin.memory_mb;
  from.disk_mb = origin.disk_mb;
  from.pids = origin.pids;
  from.open_files = origin.open_files;
  from.output_kbps = origin.output_kbps;
  return from;
}

}  // namespace

Task<Result<Info>> Manager::Impl::Create(CreateOptions options) {
  CO_TRY(CheckOpen());
  co_return co_await Shield(operations_, "create", CreateOnce(std::move(options)));
}

Task<Result<Info>> Manager::Impl::CreateOnce(CreateOptions options) {
  if (options.idempotency_key.empty()) co_return co_await CreateNow(std::move(options), {});
  std::string key_id = options.key_id, key = options.idempotency_key;
  CO_TRY_ASSIGN(auto known, idempotency_.Begin(key_id, key, options.request_hash));
  if (known) co_return std::move(*known);
  auto made = co_await CreateNow(std::move(options), {});
  if (made)
    idempotency_.Finish(key_id, key, *made);
  else
    idempotency_.Forget(key_id, key);
  co_return made;
}

Task<Result<Info>> Manager::Impl::CreateNow(CreateOptions options,
                                            std::optional<store::SnapshotRow> origin) {
  if (!origin && !templates_.Find(options.template_name))
    if (auto* found = FindSnapshot(options.key_id, options.template_name)) origin = *found;
  CO_TRY_ASSIGN(store::SandboxRow row, Prepare(options, origin ? &*origin : nullptr));
  CO_TRY(CheckQuotas(row));
  CO_TRY(limiter_.TakeCreate(options.key_id));
  if (!origin) {
    CO_TRY_ASSIGN(auto ready, co_await CreateFromPool(row));
    if (ready) co_return std::move(*ready);
  }
  MakeRoom(row);

  CO_TRY_ASSIGN(engine::Spec spec, MakeSpec(row));
  if (origin) spec.snapshot = origin->id;
  std::string id = row.id;
  Place place(creating_, id, {.key_id = row.key_id, .memory_mb = row.memory_mb});
  auto made = co_await engine_.Create(std::move(spec),
                                      std::chrono::milliseconds(config_.create_timeout_ms));
  if (!made) {
    // A late success of the engine would be a sandbox that nobody knows.
    if (made.error().code() == Code::kDeadlineExceeded)
      background_.Spawn("destroy", DestroyLater(id));
    co_return tl::unexpected(StartFailure(id, made.error()));
  }
  if (origin && made->continued) {
    // SECURITY: until it has its own token it must not be reachable.
    Status told = co_await InitEnvd(row, origin->secure ? origin->sandbox_id : "",
                                    /*reset_identity=*/true);
    if (!told) {
      co_await DestroyNow(id);
      co_return tl::unexpected(StartFailure(id, told.error()));
    }
  }
  co_return co_await Publish(MakeRecord(std::move(row), secret_), place,
                             origin ? "snapshot " + origin->id : "template");
}

Task<Result<std::optional<Info>>> Manager::Impl::CreateFromPool(store::SandboxRow row) {
  auto ready = TakeReady(row);
  if (!ready) co_return std::optional<Info>();
  row.id = ready->row.id;
  Place place(creating_, row.id, {.key_id = row.key_id, .memory_mb = row.memory_mb});
  Status introduced = co_await Introduce(ready, row);
  if (!introduced || place->exited) {
    LogWarn("a sandbox that was kept ready could not be used",
            {{"sandbox", row.id},
             {"error", introduced ? "it has ended" : introduced.error().message()}});
    Discard(ready);
    co_return std::optional<Info>();
  }
  auto record = MakeRecord(std::move(row), secret_);
  record->spare_sockets = std::move(ready->spare_sockets);
  CO_TRY_ASSIGN(Info info, co_await Publish(std::move(record), place, "pool"));
  co_return std::optional<Info>(std::move(info));
}

Task<Result<Info>> Manager::Impl::Publish(std::shared_ptr<Record> record, Place& place,
                                          std::string from) {
  store::SandboxRow& row = record->row;
  const std::string id = row.id;
  row.started_at = NextStart();
  row.end_at = EndAfter(std::chrono::seconds(row.timeout_s));
  Status stored = co_await store_.InsertSandbox(
      row,
      MakeEvent(id, "created", fmt::format("Sandbox created from template {}", row.template_id),
                {{"template", row.template_id},
                 {"timeout_s", std::to_string(row.timeout_s)},
                 {"from", std::move(from)}}));
  if (!stored) {
    LogError("a new sandbox could not be recorded and is destroyed again",
             {{"sandbox", id}, {"error", stored.error().message()}});
    co_await DestroyNow(id);
    co_return Fail(Code::kUnavailable,
                   "the sandbox could not be recorded in the server's database");
  }
  Show(record);
  if (auto exited = place->exited) {
    operations_.Spawn("exit", FinishAlone(TakeOut(id), EndingOf(*exited)));
    co_return Fail(Code::kUnavailable, "the sandbox ended while it was starting");
  }
  expiry_.Set(id, row.end_at);
  LogInfo("sandbox created", {{"sandbox", id}, {"template", row.template_id}});
  co_return MakeInfo(*record);
}

Result<store::SandboxRow> Manager::Impl::Prepare(const CreateOptions& options,
                                                 const store::SnapshotRow* origin) const {
  const std::string& name = origin ? origin->template_id : options.template_name;
  const Template* from = templates_.Find(name);
  if (!from) return Fail(Code::kNotFound, "template '{}' not found", name);
  if (options.timeout.count() <= 0)
    return Fail(Code::kInvalidArgument, "Timeout must be greater than 0");
  TRY(CheckTimeout(options.key_id, options.timeout));
  TRY(CheckSize("the metadata is", options.metadata, config_.max_metadata_bytes));
  TRY(CheckSize("the environment variables are", options.env, config_.max_metadata_bytes));
  TRY(CheckEnv(options.env));

  store::SandboxRow row;
  row.id = RandomId("i", 20);
  row.key_id = options.key_id;
  row.template_id = from->id;
  row.alias = AliasOf(*from, options.template_name);
  row.state = "running";
  row.metadata = options.metadata;
  row.env = options.env;
  row.secure = options.secure;
  row.allow_internet = options.allow_internet;
  row.allow_public_traffic = options.network.allow_public_traffic;
  row.network_json = options.network.as_requested_json;
  row.mask_request_host = options.network.mask_request_host;
  TRY(ChooseLimits(BoundsOf(options.key_id, origin), origin ? LimitedAs(*from, *origin) : *from,
                   options.limits, row));
  row.timeout_s = options.timeout.count();
  row.idempotency_key = options.idempotency_key;
  row.request_hash = options.request_hash;
  row.auto_pause = options.lifecycle.auto_pause;
  row.auto_pause_memory = options.lifecycle.auto_pause_memory;
  row.auto_resume = options.lifecycle.auto_resume;
  if (origin) {
    row.alias = origin->alias;
    row.env.insert(origin->env.begin(), origin->env.end());
  }
  return row;
}

LimitBounds Manager::Impl::BoundsOf(const std::string& key_id,
                                    const store::SnapshotRow* origin) const {
  LimitBounds bounds{config_, limiter_.OwnLimits(key_id), host_open_files_};
  // Processes that go on keep the limit they had: it can be lowered, but never raised.
  if (origin && origin->tier == "memory" && origin->open_files > 0)
    bounds.open_files = origin->open_files;
  return bounds;
}

Status Manager::Impl::CheckTimeout(const std::string& key_id, std::chrono::seconds timeout) const {
  if (std::chrono::seconds longest = limiter_.LongestTimeout(key_id); timeout > longest)
    return Fail(Code::kInvalidArgument, "Timeout cannot be greater than {} seconds",
                longest.count());
  return {};
}

Status Manager::Impl::CheckOpen() const {
  if (stopping_) return Fail(Code::kUnavailable, "the server is stopping");
  if (draining_)
    return Fail(Code::kUnavailable,
                "this server is being drained and starts no sandbox; try again later");
  return {};
}

Manager::Impl::Load Manager::Impl::CurrentLoad() const {
  Load load;
  for (const auto& [id, creation] : creating_) {
    if (creation.key_id.empty()) continue;
    ++load.sandboxes;
    load.memory_mb += creation.memory_mb;
  }
  registry_.ForEach([&](const Record& record) {
    ++load.sandboxes;
    load.memory_mb += record.row.memory_mb;
    return false;
  });
  return load;
}

// Disks are sparse: what sandboxes may write is more than there is. One that starts on a host
// without space would only see errors, and so would those that run already.
Status Manager::Impl::CheckDisk() const {
  struct statvfs disk;
  if (config_.min_free_disk_mb <= 0 || statvfs(config_.data_dir.c_str(), &disk)) return {};
  auto free_mb = static_cast<int64_t>(disk.f_bavail * disk.f_frsize) >> 20;
  if (free_mb >= config_.min_free_disk_mb) return {};
  return Fail(Code::kUnavailable,
              "this server's disk is too full to start a sandbox: {} MB are free, and {} MB are "
              "kept free; try again later",
              free_mb, config_.min_free_disk_mb);
}

Status Manager::Impl::CheckQuotas(const store::SandboxRow& row) const {
  TRY(CheckDisk());
  Load load = CurrentLoad();
  if (config_.max_sandboxes > 0 && load.sandboxes >= config_.max_sandboxes)
    return Fail(Code::kUnavailable,
                "this server already runs {} sandboxes, as many as it may; try again later",
                load.sandboxes);
  if (config_.max_promised_memory_mb > 0 &&
      load.memory_mb + row.memory_mb > config_.max_promised_memory_mb)
    return Fail(Code::kUnavailable,
                "this server has promised {} of its {} MB of memory to sandboxes and has no {} MB "
                "left; try again later",
                load.memory_mb, config_.max_promised_memory_mb, row.memory_mb);
  int64_t most = limiter_.MaxSandboxes(row.key_id);
  if (most <= 0) return {};
  int64_t own = std::count_if(creating_.begin(), creating_.end(),
                              [&](const auto& one) { return one.second.key_id == row.key_id; });
  registry_.ForEach([&](const Record& record) {
    own += record.row.key_id == row.key_id;
    return false;
  });
  if (own >= most)
    return Fail(Code::kResourceExhausted,
                "this API key already runs {} sandboxes, as many as it may at once; kill one or "
                "try again later",
                own);
  return {};
}

// Sandboxes that wait in the pool must not keep a user from one.
void Manager::Impl::MakeRoom(const store::SandboxRow& row) {
  auto too_much = [&] {
    Load load = CurrentLoad();
    auto ready = static_cast<int64_t>(pool_.ready());
    return (config_.max_sandboxes > 0 && load.sandboxes + ready >= config_.max_sandboxes) ||
           (config_.max_promised_memory_mb > 0 &&
            load.memory_mb + pool_.memory_mb() + row.memory_mb > config_.max_promised_memory_mb);
  };
  while (pool_.ready() > 0 && too_much()) Discard(pool_.TakeAny());
}

StringMap Manager::Impl::MakeEnv(const Template& from, const store::SandboxRow& row) {
  StringMap env = row.env;
  env.insert(from.env.begin(), from.env.end());
  return env;
}

Result<engine::Spec> Manager::Impl::MakeSpec(const store::SandboxRow& row) const {
  const Template* from = templates_.Find(row.template_id);
  if (!from) return Fail(Code::kNotFound, "template '{}' not found", row.template_id);
  json::object env;
  for (const auto& [name, value] : engine::CaEnvironment(config_)) env[name] = value;
  for (const auto& [name, value] : MakeEnv(*from, row)) env[name] = value;
  json::object boot{{"sandboxId", row.id},
                    {"templateId", row.template_id},
                    {"envVars", std::move(env)},
                    {"defaultUser", from->user},
                    {"defaultWorkdir", from->workdir}};
  if (row.secure) boot["accessToken"] = InsideToken(secret_, row.id);
  if (row.output_kbps > 0) boot["limits"] = {{"output_kbps", row.output_kbps}};

  engine::Spec spec;
  spec.id = row.id;
  spec.root_dir = from->root_dir;
  spec.group = row.key_id;
  spec.limits = LimitsOf(row, config_);
  TRY_ASSIGN(spec.egress, MakeEgress(row.allow_internet, row.network_json));
  spec.boot = json::serialize(boot);
  if (spec.boot.size() > engine::kMaxBootBytes)
    return Fail(Code::kInvalidArgument,
                "the environment variables are too large for the sandbox: {} bytes with those of "
                "the template, at most {} are allowed",
                spec.boot.size(), engine::kMaxBootBytes);
  return spec;
}

Error Manager::Impl::StartFailure(const std::string& id, const Error& error) const {
  // SECURITY: the engine's text may name paths of the host; clients get a text of ours.
  LogError("a sandbox could not be started",
           {{"sandbox", id}, {"code", CodeName(error.code())}, {"error", error.message()}});
  switch (error.code()) {
    case Code::kDeadlineExceeded:
      return Error(Code::kDeadlineExceeded, fmt::format("the sandbox did not start within {} ms",
                                                        config_.create_timeout_ms));
    case Code::kResourceExhausted:
    case Code::kUnavailable:
    case Code::kCanceled:
      return Error(Code::kUnavailable,
                   "this server cannot start another sandbox now; try again later");
    // What is wrong with a snapshot, without a path in it.
    case Code::kDataLoss:
    case Code::kFailedPrecondition:
      return Error(error.code(),
                   fmt::format("the sandbox could not be started: {}", error.message()));
    default:
      return Error(Code::kInternal,
                   fmt::format("the sandbox could not be started; the server's log says why, under "
                               "the name {}",
                               id));
  }
}

// Start times are cut to microseconds, which is what clients can hand back, and no two sandboxes
// have the same one, so that lists have one order.
Time Manager::Impl::EndAfter(std::chrono::seconds timeout) const {
  // Not from the start, which may lie ahead: it only ever grows, also when the clock is set back.
  return std::chrono::floor<std::chrono::microseconds>(Now()) + timeout;
}

Time Manager::Impl::NextStart() {
  expiry_.FollowClock();
  Time now = std::chrono::floor<std::chrono::microseconds>(Now());
  last_start_ = std::max(now, last_start_ + std::chrono::microseconds(1));
  return last_start_;
}

}  // namespace caisson::sandbox

// Changes to a sandbox that lives.
#include "base/log.h"
#include "sandbox/manager_impl.h"
#include "sandbox/shield.h"

namespace caisson::sandbox {

Task<Result<Info>> Manager::Impl::SetTimeout(std::string key_id, std::string id,
                                             std::chrono::seconds timeout, bool only_extend) {
  CO_TRY_ASSIGN(auto record, FindOwned(key_id, id));
  if (!record->running) {
    if (std::string doing = turns_.Doing(id); !doing.empty())
      co_return Fail(Code::kAborted, "sandbox '{}' {}; try again later", id, doing);
    co_return Fail(Code::kNotFound, "sandbox '{}' is paused; resume it first", id);
  }
  record->active_at = std::chrono::steady_clock::now();
  std::chrono::seconds longest(config_.max_timeout_s);
  if (only_extend && timeout > longest)
    co_return Fail(Code::kInvalidArgument, "Timeout cannot be greater than {} seconds",
                   longest.count());
  store::SandboxRow& row = record->row;
  Time now = std::chrono::floor<std::chrono::microseconds>(Now()),
       latest = row.started_at + longest;
  if (now >= latest)
    co_return Fail(Code::kInvalidArgument, "the sandbox has reached its longest life of {} seconds",
                   longest.count());
  timeout = std::clamp(timeout, std::chrono::seconds(0), longest);
  Time end = std::min<Time>(now + timeout, latest);
  if (only_extend) end = std::max(end, row.end_at);
  if (end == row.end_at) co_return MakeInfo(*record);

  row.end_at = end;
  Info info = MakeInfo(*record);
  expiry_.Set(id, end);
  std::string text = FormatTime(end);
  auto event = MakeEvent(id, "timeout_set", fmt::format("The end was set to {}", text),
                         {{"end_at", text}}, "debug");
  CO_TRY(co_await Shield(operations_, "set timeout", WriteChange(row, std::move(event))));
  co_return info;
}

Task<Status> Manager::Impl::SetNetwork(std::string key_id, std::string id, bool allow_internet,
                                       std::string as_requested_json) {
  CO_TRY_ASSIGN(auto record, FindOwned(key_id, id));
  if (!record->running)
    co_return Fail(Code::kFailedPrecondition, "sandbox '{}' is paused; resume it first", id);
  store::SandboxRow& row = record->row;
  // SECURITY: what is not enforced must not be reported as set.
  if (row.allow_internet != allow_internet)
    co_return Fail(Code::kUnimplemented,
                   "the internet access of a running sandbox cannot be changed yet; create a "
                   "sandbox with the settings it needs");
  if (row.network_json == as_requested_json) co_return Status();
  row.network_json = std::move(as_requested_json);
  auto event = MakeEvent(id, "network_set", "The network settings were replaced",
                         {{"network", row.network_json}});
  co_return co_await Shield(operations_, "set network", WriteChange(row, std::move(event)));
}

Task<Result<Info>> Manager::Impl::SetLimits(std::string key_id, std::string id,
                                            LimitOptions limits) {
  CO_TRY_ASSIGN(auto record, FindOwned(key_id, id));
  if (!record->running)
    co_return Fail(Code::kFailedPrecondition, "sandbox '{}' is paused; resume it first", id);
  store::SandboxRow wanted = record->row;
  CO_TRY(ChangeLimits(config_, limits, wanted));
  int64_t more = wanted.memory_mb - record->row.memory_mb;
  if (config_.max_promised_memory_mb > 0 && more > 0 &&
      CurrentLoad().memory_mb + more > config_.max_promised_memory_mb)
    co_return Fail(Code::kUnavailable, "this server has no {} MB of memory left to promise", more);
  co_return co_await Shield(operations_, "set limits",
                            SetLimitsNow(std::move(record), std::move(wanted)));
}

Task<Result<Info>> Manager::Impl::SetLimitsNow(std::shared_ptr<Record> record,
                                               store::SandboxRow wanted) {
  const std::string& id = record->row.id;
  Status set = co_await engine_.SetLimits(id, LimitsOf(wanted, config_));
  if (!set) {
    LogWarn("the limits of a sandbox could not be changed",
            {{"sandbox", id}, {"error", set.error().message()}});
    if (set.error().code() == Code::kUnimplemented)
      co_return Fail(Code::kUnimplemented,
                     "this server cannot change these limits while a sandbox runs");
    co_return Fail(Code::kInvalidArgument,
                   "the kernel refused these limits; does the sandbox use more memory already?");
  }
  if (!record->running) co_return Fail(Code::kNotFound, "sandbox '{}' has ended", id);
  // Only the limits: something else of the row may have changed meanwhile.
  store::SandboxRow& row = record->row;
  row.cpus = wanted.cpus;
  row.memory_mb = wanted.memory_mb;
  row.pids = wanted.pids;
  Info info = MakeInfo(*record);
  auto event = MakeEvent(id, "limits_set",
                         fmt::format("The limits were set to {} CPUs, {} MB of memory and {} "
                                     "processes",
                                     row.cpus, row.memory_mb, info.pids),
                         {{"cpus", std::to_string(row.cpus)},
                          {"memory_mb", std::to_string(row.memory_mb)},
                          {"pids", std::to_string(info.pids)}});
  CO_TRY(co_await WriteChange(row, std::move(event)));
  co_return info;
}

Task<Status> Manager::Impl::WriteChange(store::SandboxRow row, store::SandboxEvent event) {
  co_return co_await store_.UpdateSandbox(std::move(row), std::move(event));
}

}  // namespace caisson::sandbox

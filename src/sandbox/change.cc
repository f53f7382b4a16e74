// Changes to a sandbox that lives.
#include "base/log.h"
#include "sandbox/egress.h"
#include "sandbox/manager_impl.h"
#include "sandbox/secrets.h"
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
  expiry_.FollowClock();
  record->active_at = std::chrono::steady_clock::now();
  std::chrono::seconds longest = limiter_.LongestTimeout(record->row.key_id);
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
  co_return co_await Shield(
      operations_, "set network",
      ReplaceNetwork(std::move(record), allow_internet, std::move(as_requested_json)));
}

Task<Status> Manager::Impl::ReplaceNetwork(std::shared_ptr<Record> record, bool allow_internet,
                                           std::string as_requested_json) {
  // Whoever is answered last has what he asked for.
  CO_TRY_ASSIGN(Turns::Turn turn,
                co_await turns_.Take(record->row.id, "is getting other network rules"));
  if (!record->running || turn.killed())
    co_return Fail(Code::kFailedPrecondition, "sandbox '{}' does not run any more", record->row.id);
  store::SandboxRow& row = record->row;
  CO_TRY_ASSIGN(engine::Egress egress, MakeEgress(allow_internet, as_requested_json));
  CO_TRY_ASSIGN(engine::Egress before, MakeEgress(row.allow_internet, row.network_json));
  // SECURITY: what is not enforced must not be reported as set, so the engine comes first.
  if (egress != before) {
    Status set = co_await engine_.SetEgress(row.id, std::move(egress));
    if (!set) {
      LogError("the network rules of a sandbox could not be replaced",
               {{"sandbox", row.id}, {"error", set.error().message()}});
      co_return tl::unexpected(
          Error(set.error().code(), "the network rules could not be replaced"));
    }
  }
  if (row.network_json == as_requested_json && row.allow_internet == allow_internet)
    co_return Status();
  row.allow_internet = allow_internet;
  row.network_json = std::move(as_requested_json);
  auto event = MakeEvent(
      row.id, "network_set", "The network settings were replaced",
      {{"allow_internet", allow_internet ? "true" : "false"}, {"network", row.network_json}});
  co_return co_await WriteChange(row, std::move(event));
}

void Manager::Impl::OnBlocked(engine::Blocked blocked) {
  if (!registry_.Find(blocked.id)) return;
  std::string id = blocked.id;
  store::SandboxEvent event;
  if (blocked.more > 0) {
    event = MakeEvent(id, "egress_blocked",
                      fmt::format("{} more connections were blocked", blocked.more),
                      {{"count", std::to_string(blocked.more)}}, "warn");
  } else {
    StringMap fields{{"destination", blocked.destination}, {"protocol", blocked.protocol}};
    std::string where = blocked.destination;
    if (blocked.port) {
      fields["port"] = std::to_string(blocked.port);
      where += ":" + fields["port"];
    }
    std::string who;
    if (!blocked.command.empty()) {
      fields["pid"] = std::to_string(blocked.pid);
      fields["command"] = blocked.command;
      who = fmt::format(" by {} (process {})", blocked.command, blocked.pid);
    }
    event = MakeEvent(
        id, "egress_blocked",
        fmt::format("An attempt to reach {} ({}) was blocked{}", where, blocked.protocol, who),
        std::move(fields), "warn");
  }
  background_.Spawn("blocked", WriteBlocked(std::move(event)));
}

Task<void> Manager::Impl::WriteBlocked(store::SandboxEvent event) {
  std::string id = event.sandbox_id;
  Status stored = co_await store_.AppendEvent(std::move(event));
  if (!stored)
    LogWarn("a blocked connection could not be recorded",
            {{"sandbox", id}, {"error", stored.error().message()}});
}

Task<Result<Info>> Manager::Impl::SetLimits(std::string key_id, std::string id,
                                            LimitOptions limits) {
  CO_TRY(FindOwned(key_id, id));
  co_return co_await Shield(operations_, "set limits", SetLimitsNow(std::move(id), limits));
}

Task<Result<Info>> Manager::Impl::SetLimitsNow(std::string id, LimitOptions limits) {
  // A sandbox that is being paused or copied is left alone until that is done.
  CO_TRY_ASSIGN(Turns::Turn turn, co_await turns_.Take(id, "is getting other limits"));
  auto record = FindAny(id);
  if (!record || turn.killed()) co_return Fail(Code::kNotFound, "sandbox '{}' has ended", id);
  const bool paused = !record->running;
  // What stands still in memory goes on with the limits it has.
  if (paused && record->row.saved_tier == TierName(engine::Tier::kFrozen))
    co_return Fail(Code::kFailedPrecondition, "sandbox '{}' is paused; resume it first", id);
  store::SandboxRow wanted = record->row;
  CO_TRY(ChangeLimits(BoundsOf(wanted.key_id), limits, paused, wanted));
  int64_t more = wanted.memory_mb - record->row.memory_mb;
  if (config_.max_promised_memory_mb > 0 && more > 0 && !paused &&
      CurrentLoad().memory_mb + more > config_.max_promised_memory_mb)
    co_return Fail(Code::kUnavailable, "this server has no {} MB of memory left to promise", more);
  CO_TRY(co_await ApplyLimits(record->row, wanted));
  if (FindAny(id) != record) co_return Fail(Code::kNotFound, "sandbox '{}' has ended", id);
  // Only the limits: something else of the row may have changed meanwhile.
  store::SandboxRow& row = record->row;
  row.cpus = wanted.cpus;
  row.memory_mb = wanted.memory_mb;
  row.disk_mb = wanted.disk_mb;
  row.pids = wanted.pids;
  row.open_files = wanted.open_files;
  row.output_kbps = wanted.output_kbps;
  auto event = MakeEvent(
      id, "limits_set",
      fmt::format("The limits were set to {} CPUs, {} MB of memory, {} MB of "
                  "disk, {} processes, {} open files and {} KB of output per "
                  "second (0 is no limit)",
                  row.cpus, row.memory_mb, row.disk_mb, row.pids, row.open_files, row.output_kbps),
      {{"cpus", std::to_string(row.cpus)},
       {"memory_mb", std::to_string(row.memory_mb)},
       {"disk_mb", std::to_string(row.disk_mb)},
       {"pids", std::to_string(row.pids)},
       {"open_files", std::to_string(row.open_files)},
       {"output_kbps", std::to_string(row.output_kbps)}});
  Info info = MakeInfo(*record);
  CO_TRY(co_await WriteChange(row, std::move(event)));
  co_return info;
}

Task<Status> Manager::Impl::ApplyLimits(store::SandboxRow before, store::SandboxRow wanted) {
  const std::string& id = wanted.id;
  if (before.state == "paused") {
    // The rest is what it will be resumed with.
    if (wanted.disk_mb == before.disk_mb) co_return Status();
    CO_TRY(CheckDisk());
    Status grown = co_await engine_.GrowDisk(id, wanted.disk_mb << 20, save_timeout_);
    if (grown) co_return Status();
    LogError("the disk of a sandbox could not be enlarged",
             {{"sandbox", id}, {"error", grown.error().message()}});
    co_return Fail(Code::kUnavailable, "the disk could not be enlarged now; try again later");
  }
  const std::string token = before.secure ? InsideToken(secret_, id) : "";
  auto set_output = [&](int64_t kbps) -> Task<Status> {
    CO_TRY_ASSIGN(UniqueFd socket, co_await DialEnvd(id));
    co_return co_await WithDeadline(std::chrono::milliseconds(config_.envd_timeout_ms),
                                    "telling envd another rate of output",
                                    envd_.SetOutputRate(std::move(socket), kbps, token));
  };
  const bool output_changes = wanted.output_kbps != before.output_kbps;
  if (output_changes && !co_await set_output(wanted.output_kbps))
    co_return Fail(Code::kUnavailable, "the limits could not be changed: envd does not answer");
  Status set = co_await engine_.SetLimits(id, LimitsOf(wanted, config_));
  if (set) co_return Status();
  if (output_changes) (void)co_await set_output(before.output_kbps);
  LogWarn("the limits of a sandbox could not be changed",
          {{"sandbox", id}, {"error", set.error().message()}});
  if (set.error().code() == Code::kUnimplemented)
    co_return Fail(Code::kUnimplemented,
                   "this server cannot change these limits while a sandbox runs");
  co_return Fail(Code::kInvalidArgument,
                 "the kernel refused these limits; does the sandbox use more memory already?");
}

Task<Status> Manager::Impl::WriteChange(store::SandboxRow row, store::SandboxEvent event) {
  co_return co_await store_.UpdateSandbox(std::move(row), std::move(event));
}

}  // namespace caisson::sandbox

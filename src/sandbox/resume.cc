// Bringing a paused sandbox back: continued by the engine, told by envd's own mouth that it is
// well, written down, then open to traffic.
#include "base/log.h"
#include "sandbox/manager_impl.h"
#include "sandbox/secrets.h"
#include "sandbox/shield.h"

namespace caisson::sandbox {

Task<Result<Connected>> Manager::Impl::Connect(std::string key_id, std::string id,
                                               ResumeOptions options) {
  CO_TRY_ASSIGN(auto record, FindOwned(key_id, id));
  if (record->running) {
    CO_TRY_ASSIGN(Info info, co_await SetTimeout(key_id, id, options.timeout, true));
    co_return Connected{std::move(info), false};
  }
  CO_TRY(CheckTimeout(record->row.key_id, options.timeout));
  co_return co_await Shield(operations_, "resume", ResumeNow(std::move(id), options, "request"));
}

Task<Result<Info>> Manager::Impl::Resume(std::string key_id, std::string id,
                                         ResumeOptions options) {
  CO_TRY_ASSIGN(auto record, FindOwned(key_id, id));
  bool was_running = record->running;
  if (!was_running) {
    CO_TRY_ASSIGN(Connected connected, co_await Connect(key_id, id, options));
    if (connected.resumed) co_return std::move(connected.info);
  }
  co_return Fail(Code::kFailedPrecondition, "sandbox '{}' is already running", id);
}

Task<Result<Connected>> Manager::Impl::ResumeNow(std::string id, ResumeOptions options,
                                                 std::string reason) {
  CO_TRY_ASSIGN(Turns::Turn turn, co_await turns_.Take(id, "is being resumed"));
  if (auto running = registry_.Find(id)) {
    // Somebody else was faster, or it could not be paused. Requests give it no more time.
    if (reason == "traffic") co_return Connected{MakeInfo(*running), false};
    CO_TRY_ASSIGN(Info info, co_await SetTimeout(running->row.key_id, id, options.timeout, true));
    co_return Connected{std::move(info), false};
  }
  auto it = paused_.find(id);
  if (it == paused_.end())
    co_return Fail(Code::kNotFound, "sandbox '{}' does not exist or has ended", id);
  auto record = it->second;
  store::SandboxRow row = record->row;
  CO_TRY(CheckOpen());
  CO_TRY(CheckQuotas(row));
  MakeRoom(row);
  Place place(creating_, id, {.key_id = row.key_id, .memory_mb = row.memory_mb});

  auto instance = co_await Continue(row, options.memory);
  if (turn.killed()) co_return Fail(Code::kNotFound, "sandbox '{}' was killed meanwhile", id);
  if (!instance)
    co_return tl::unexpected(co_await StayPaused(id, std::move(reason), instance.error()));
  // SECURITY: as long as envd has not confirmed its token nobody may reach it.
  Status told =
      instance->continued ? co_await InitEnvd(row, row.secure ? id : "", false) : Status();
  if (turn.killed()) co_return Fail(Code::kNotFound, "sandbox '{}' was killed meanwhile", id);
  if (!told) {
    co_await PutBack(record, told.error());
    co_return Fail(Code::kUnavailable,
                   "sandbox '{}' could not be resumed: its envd does not answer", id);
  }
  if (options.auto_pause) row.auto_pause = *options.auto_pause;
  Info info = co_await Reopen(record, std::move(row), options.timeout, std::move(reason),
                              instance->continued);
  if (auto exited = place->exited) {
    if (auto gone = TakeOut(id)) operations_.Spawn("exit", FinishAlone(gone, EndingOf(*exited)));
    co_return Fail(Code::kUnavailable, "the sandbox ended while it was being resumed");
  }
  co_return Connected{std::move(info), true};
}

Task<Error> Manager::Impl::StayPaused(std::string id, std::string reason, Error error) {
  Error told = SaveFailure(id, "resumed", error);
  Whereabouts found = co_await Locate(id);
  if (error.code() == Code::kNotFound && !found.running && !found.saved) {
    if (auto record = TakeOut(id)) operations_.Spawn("lost", FinishAlone(record, kSavedStateLost));
  } else {
    co_await WriteEvent(
        MakeEvent(id, "resume_failed",
                  fmt::format("The sandbox could not be resumed ({}) and stays paused: {}", reason,
                              told.message()),
                  {{"reason", reason}}, "error"));
  }
  co_return told;
}

Task<Result<engine::Instance>> Manager::Impl::Continue(store::SandboxRow row, bool memory) {
  auto spec = MakeSpec(row);
  if (!spec)
    co_return Fail(Code::kFailedPrecondition,
                   "its template '{}' is not on this server any more; put it back first",
                   row.template_id);
  auto instance = co_await engine_.Resume(std::move(*spec), memory, save_timeout_);
  if (instance) co_return instance;
  // It may be up all the same: an answer that came too late, now or the last time.
  Whereabouts found = co_await Locate(row.id);
  if (!found.known || !found.running || found.saved) co_return instance;
  co_return engine::Instance{.id = row.id, .continued = true};
}

Task<Status> Manager::Impl::InitEnvd(store::SandboxRow row, std::string owner,
                                     bool reset_identity) {
  const Template* from = templates_.Find(row.template_id);
  if (!from) co_return Fail(Code::kNotFound, "template '{}' not found", row.template_id);
  EnvdSettings settings{.sandbox_id = row.id,
                        .access_token = row.secure ? InsideToken(secret_, row.id) : "",
                        .env = MakeEnv(*from, row),
                        .user = from->user,
                        .workdir = from->workdir,
                        .output_kbps = row.output_kbps,
                        .reset_identity = reset_identity};
  auto tell = [&](std::string token) -> Task<Status> {
    CO_TRY_ASSIGN(UniqueFd socket, co_await DialEnvd(row.id));
    co_return co_await WithDeadline(std::chrono::milliseconds(config_.envd_timeout_ms),
                                    "telling envd whose it is",
                                    envd_.Init(std::move(socket), settings, std::move(token)));
  };
  if (owner.empty()) co_return co_await tell("");
  Status told = co_await tell(InsideToken(secret_, owner));
  // Those that were started before there were inside tokens have the one of their clients.
  if (!told && told.error().code() == Code::kUnauthenticated)
    told = co_await tell(AccessToken(secret_, owner));
  co_return told;
}

Task<Result<UniqueFd>> Manager::Impl::DialEnvd(std::string id) {
  CO_TRY_ASSIGN(auto sockets, co_await WithDeadline<std::vector<UniqueFd>>(
                                  std::chrono::milliseconds(config_.envd_timeout_ms),
                                  "getting a socket into the sandbox", engine_.Dial(id, 1)));
  if (sockets.empty())
    co_return Fail(Code::kUnavailable, "the engine gave no socket into sandbox {}", id);
  co_return std::move(sockets.front());
}

Task<void> Manager::Impl::PutBack(std::shared_ptr<Record> record, Error error) {
  const std::string id = record->row.id;
  LogError("a resumed sandbox's envd does not answer; it is put away again",
           {{"sandbox", id}, {"error", error.message()}});
  auto saved = co_await engine_.Pause(id, /*memory=*/true, save_timeout_);
  if (!saved) saved = co_await engine_.Pause(id, /*memory=*/false, save_timeout_);
  Whereabouts found = saved ? Whereabouts{} : co_await Locate(id);
  if (!paused_.contains(id)) co_return;  // it was killed meanwhile
  // If nobody can tell, the next start asks the engine. One that lives waits for the next resume.
  if (!saved && (!found.known || found.saved)) co_return;
  if (!saved && !found.running) {
    operations_.Spawn(
        "lost", FinishAlone(TakeOut(id), {"resume_failed",
                                          "The sandbox ended: its envd did not answer after it was "
                                          "resumed, and it could not be saved again",
                                          "error"}));
    co_return;
  }
  if (saved) MarkPaused(record->row, *saved);
  Status stored = co_await store_.UpdateSandbox(
      record->row,
      MakeEvent(id, "resume_failed",
                fmt::format("The sandbox could not be resumed: its envd does not answer. {}",
                            saved ? "It is paused again"
                                  : "It could not be saved again and waits for the next resume"),
                SavedFields(record->row, "envd_unresponsive"), "error"));
  if (!stored)
    LogError("an event could not be recorded",
             {{"sandbox", id}, {"error", stored.error().message()}});
}

Task<Info> Manager::Impl::Reopen(std::shared_ptr<Record> record, store::SandboxRow row,
                                 std::chrono::seconds timeout, std::string reason, bool continued) {
  const std::string id = row.id;
  row.state = "running";
  row.started_at = NextStart();
  row.end_at = EndAfter(timeout);
  row.saved_tier.clear();
  row.saved_why.clear();
  row.saved_memory_bytes = row.saved_disk_bytes = 0;
  Status stored = co_await store_.UpdateSandbox(
      row, MakeEvent(id, "resumed",
                     fmt::format("Sandbox resumed ({}){}", reason,
                                 continued ? "" : ": booted anew from its files"),
                     {{"reason", reason}, {"memory", continued ? "true" : "false"}}));
  // It runs, and a new server process would find out by asking the engine.
  if (!stored)
    LogError("a resume could not be recorded",
             {{"sandbox", id}, {"error", stored.error().message()}});
  auto again = MakeRecord(std::move(row), secret_);
  again->history = std::move(record->history);
  again->means = std::move(record->means);
  again->alarms = record->alarms;
  again->route.private_ports = std::move(record->route.private_ports);
  if (!paused_.contains(id)) co_return MakeInfo(*again);  // it was killed meanwhile
  paused_.erase(id);
  Show(again);
  expiry_.Set(id, again->row.end_at);
  LogInfo("sandbox resumed", {{"sandbox", id}, {"reason", reason}, {"continued", continued}});
  co_return MakeInfo(*again);
}

}  // namespace caisson::sandbox

#include "work/sandboxes.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/id.h"
#include "base/log.h"
#include "sandbox/shield.h"
#include "store/work_rows.h"
#include "work/sandbox_time.h"

namespace caisson::work {
namespace {

namespace json = boost::json;
using store::Assign;
using store::Select;
using store::Transaction;

constexpr std::chrono::milliseconds kSettleInterval{10};
constexpr std::string_view kElsewhere = "on_another_server";

Error NoSuchSandbox(const std::string& id) {
  return Error(Code::kNotFound, fmt::format("sandbox '{}' does not exist", id));
}

Error AtServer(const std::string& id, const std::string& node) {
  return Error(Code::kUnavailable,
               fmt::format("{}: sandbox '{}' is at the server {} of this database; ask that one",
                           kElsewhere, id, node));
}

bool Lives(const SandboxRow& row) { return !row.destroyed_at; }

// SECURITY: someone else's looks like one that does not exist.
template <class Row>
Status CheckOwner(Transaction& read, const std::optional<std::string>& id,
                  const std::string& owner_id, std::string_view what) {
  if (!id) return {};
  TRY_ASSIGN(Row row, read.Need<Row>(*id, what));
  if (row.owner_id != owner_id) return Fail(Code::kNotFound, "there is no {} {}", what, *id);
  return {};
}

// Whether a failed create may have made a sandbox all the same.
bool MayHaveMade(const Error& error) {
  switch (error.code()) {
    case Code::kInvalidArgument:
    case Code::kUnauthenticated:
    case Code::kPermissionDenied:
    case Code::kNotFound:
    case Code::kResourceExhausted:
      return false;
    default:
      return true;
  }
}

}  // namespace

bool IsElsewhere(const Error& error) { return error.message().starts_with(kElsewhere); }

Sandboxes::Sandboxes(asio::any_io_executor executor, const Config& config, store::Store& store,
                     events::Log& log, sandbox::Provider& provider, std::string installation)
    : executor_(executor),
      config_(config),
      store_(store),
      log_(log),
      provider_(provider),
      installation_(std::move(installation)),
      node_(provider.name() == "local" ? store.node() : ""),
      policy_(config),
      tasks_(executor),
      operations_(executor),
      room_(executor) {}

Sandboxes::~Sandboxes() = default;

Task<Status> Sandboxes::Start() {
  // A provider that is down must not keep the server from starting.
  if (Status done = co_await Reconcile(); !done)
    LogWarn("sandboxes could not be compared with their rows",
            {{"provider", provider_.name()}, {"error", done.error().message()}});
  tasks_.Spawn("care for sandboxes", Care());
  tasks_.Spawn("health of sandboxes", WatchHealth());
  co_return Status();
}

Task<void> Sandboxes::Stop() {
  co_await tasks_.Stop();
  co_await operations_.Stop(std::chrono::milliseconds(config_.shutdown_grace_ms));
}

void Sandboxes::OnStopped(std::function<void(const std::string&)> handler) {
  on_stopped_ = std::move(handler);
}

void Sandboxes::Stopped(const SandboxRow& row) {
  missed_.erase(row.id);
  room_.Notify();
  if (on_stopped_) on_stopped_(row.id);
}

store::EventRow Sandboxes::About(const SandboxRow& row, std::string type, json::object data) {
  store::EventRow event;
  event.type = std::move(type);
  event.owner_id = row.owner_id;
  event.agent_id = row.agent_id.value_or("");
  event.task_id = row.task_id.value_or("");
  if (row.holder_kind == "task")
    event.execution_id = row.holder_id.substr(0, row.holder_id.find(kNext));
  if (row.holder_kind == "session") event.session_id = row.holder_id;
  event.sandbox_id = row.id;
  event.data = json::serialize(data);
  return event;
}

// ---- making ------------------------------------------------------------------------------------

Task<Result<SandboxRow>> Sandboxes::Create(SandboxRequest request) {
  co_return co_await sandbox::Shield(operations_, "create a sandbox",
                                     CreateOnce(std::move(request)));
}

Task<Result<SandboxRow>> Sandboxes::CreateOnce(SandboxRequest request) {
  const SandboxHolder& holder = request.holder;
  std::string place = holder.id.empty() ? "" : holder.kind + "/" + holder.id;
  // Two requests for one holder: the second gets what the first makes.
  while (!place.empty() && making_.contains(place)) {
    auto made = making_.at(place);
    co_await made->Wait(std::chrono::milliseconds(1'000));
  }
  struct Place {
    std::map<std::string, std::shared_ptr<Condition>>& all;
    std::string name;
    ~Place() {
      auto it = all.find(name);
      if (it == all.end()) return;
      it->second->Notify();
      all.erase(it);
    }
  } guard{making_, place};
  if (!place.empty()) {
    making_[place] = std::make_shared<Condition>(executor_);
    CO_TRY_ASSIGN(auto there, co_await Reuse(holder));
    if (there) co_return std::move(*there);
  }
  SandboxRow row{.id = RandomId("new-", 20),
                 .provider = provider_.name(),
                 .node = node_,
                 .owner_id = request.owner_id,
                 .holder_kind = holder.kind,
                 .holder_id = holder.id,
                 .agent_id = holder.agent_id,
                 .task_id = holder.task_id,
                 .repo_url = request.repo_url,
                 .base_branch = request.base_branch,
                 .created_at = Now()};
  row.last_used_at = row.created_at;
  Busy busy(busy_, row.id);
  CO_TRY(co_await store_.Write([row](Transaction& write) -> Status {
    TRY(CheckOwner<store::AgentRow>(write, row.agent_id, row.owner_id, "agent"));
    TRY(CheckOwner<store::TaskRow>(write, row.task_id, row.owner_id, "task"));
    Status inserted = write.Insert(row);
    if (inserted || inserted.error().code() != Code::kAlreadyExists) return inserted;
    // Only another server can have been faster.
    return Fail(Code::kUnavailable, "{}: a sandbox is just being made there", kElsewhere);
  }));
  co_return co_await MakeFor(std::move(row), std::move(request));
}

Task<Result<std::optional<SandboxRow>>> Sandboxes::Reuse(SandboxHolder holder) {
  CO_TRY_ASSIGN(auto row, co_await FindByHolder(holder.kind, holder.id));
  if (!row) co_return std::nullopt;
  CO_TRY(CheckHere(*row));
  if (!row->backend_id.empty() && row->status != "error" && row->status != "terminating") {
    Status runs = co_await Resume(row->owner_id, row->id);
    if (runs) {
      CO_TRY_ASSIGN(row, co_await FindByHolder(holder.kind, holder.id));
      if (row) co_return row;
    } else if (runs.error().code() != Code::kNotFound) {
      co_return tl::unexpected(std::move(runs).error());
    }
  }
  // What a server before this one did not finish, or what does not work.
  if (row && Lives(*row)) CO_TRY(co_await DestroyRow(*row, "replaced"));
  co_return std::nullopt;
}

Task<Result<SandboxRow>> Sandboxes::MakeFor(SandboxRow row, SandboxRequest request) {
  sandbox::ProviderOptions options{.owner_id = request.owner_id,
                                   .template_name = request.template_name,
                                   .timeout = request.timeout,
                                   .metadata = std::move(request.metadata),
                                   .env = std::move(request.env),
                                   .allow_internet = request.allow_internet,
                                   .sleeps = request.sleeps,
                                   .idempotency_key = row.id};
  if (options.timeout.count() <= 0)
    options.timeout = std::chrono::seconds(config_.task_sandbox_timeout_s);
  options.metadata[std::string(kRowKey)] = row.id;
  options.metadata[std::string(kInstallationKey)] = installation_;
  if (row.task_id) options.metadata["task_id"] = *row.task_id;
  auto begun = std::chrono::steady_clock::now();
  auto made = co_await CreateInTurn(std::move(options), request.wait);
  if (!made) {
    LogWarn("a sandbox could not be made", {{"agent_id", row.agent_id.value_or("")},
                                            {"task_id", row.task_id.value_or("")},
                                            {"sandbox_id", row.id},
                                            {"error", made.error().message()}});
    if (MayHaveMade(made.error())) co_await KillByRow(row.owner_id, row.id);
    (void)co_await WriteEnd(row, "error", made.error().message());
    co_return tl::unexpected(std::move(made).error());
  }
  std::string placeholder = row.id;
  row.backend_id = made->id;
  if (provider_.name() == "local") row.id = made->id;
  row.status = "running";
  row.creation_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                        std::chrono::steady_clock::now() - begun)
                        .count();
  row.last_used_at = Now();
  auto written = co_await SetRunning(placeholder, row, made->template_id);
  if (!written) {
    // Nobody would ever find it.
    (void)co_await provider_.Kill(row.owner_id, row.backend_id);
    row.id = placeholder;
    (void)co_await WriteEnd(std::move(row), "error", written.error().message());
  }
  co_return written;
}

Task<Result<SandboxRow>> Sandboxes::SetRunning(std::string placeholder, SandboxRow row,
                                               std::string from) {
  auto event =
      About(row, "sandbox_created",
            {{"status", row.status}, {"template", from}, {"creation_ms", row.creation_ms}});
  co_return co_await store_.Write(
      [placeholder, row, event, &log = log_](Transaction& write) -> Result<SandboxRow> {
        auto mine =
            Select<SandboxRow>().Eq(&SandboxRow::id, placeholder).IsNull(&SandboxRow::destroyed_at);
        TRY_ASSIGN(int64_t found, write.Delete(mine));
        if (found == 0)
          return Fail(Code::kAborted, "the sandbox was ended while it was being made");
        TRY(write.Insert(row));
        TRY(log.Emit(write, event));
        return row;
      });
}

Task<void> Sandboxes::KillByRow(std::string owner_id, std::string row_id) {
  auto found = co_await provider_.List(
      owner_id, {{std::string(kRowKey), row_id}, {std::string(kInstallationKey), installation_}});
  if (!found) co_return;  // Reconcile() finds it
  for (const auto& info : *found) (void)co_await provider_.Kill(owner_id, info.id);
}

// ---- looking -----------------------------------------------------------------------------------

Task<Result<std::optional<SandboxRow>>> Sandboxes::FindByHolder(std::string kind, std::string id) {
  co_return co_await store_.Read([kind, id](Transaction& read) {
    return read.First(Select<SandboxRow>()
                          .Eq(&SandboxRow::holder_kind, kind)
                          .Eq(&SandboxRow::holder_id, id)
                          .IsNull(&SandboxRow::destroyed_at));
  });
}

Task<Result<SandboxRow>> Sandboxes::FindRow(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(auto row,
                co_await store_.Read([id](Transaction& read) { return read.Get<SandboxRow>(id); }));
  // SECURITY: someone else's looks like one that does not exist.
  if (row && (owner_id.empty() || row->owner_id == owner_id)) co_return std::move(*row);
  co_return tl::unexpected(NoSuchSandbox(id));
}

Task<Result<SandboxRow>> Sandboxes::Find(std::string owner_id, std::string id) {
  auto row = co_await FindRow(owner_id, id);
  if (row || row.error().code() != Code::kNotFound) co_return row;
  co_return co_await Adopt(std::move(owner_id), std::move(id));
}

Task<Result<sandbox::ProviderInfo>> Sandboxes::LookUp(std::string owner_id, std::string id) {
  if (!owner_id.empty()) co_return co_await provider_.Get(std::move(owner_id), std::move(id));
  CO_TRY_ASSIGN(auto all, co_await provider_.List("", {}));
  auto found = std::ranges::find(all, id, &sandbox::ProviderInfo::id);
  if (found == all.end() || found->owner_id.empty()) co_return tl::unexpected(NoSuchSandbox(id));
  co_return std::move(*found);
}

Task<Result<SandboxRow>> Sandboxes::Adopt(std::string owner_id, std::string id) {
  if (provider_.name() != "local") co_return tl::unexpected(NoSuchSandbox(id));
  auto info = co_await LookUp(owner_id, id);
  if (!info) {
    CO_TRY_ASSIGN(std::string node, co_await store_.FindNode(std::move(owner_id), id));
    co_return tl::unexpected(node.empty() ? NoSuchSandbox(id) : AtServer(id, node));
  }
  SandboxRow row{.id = id,
                 .provider = provider_.name(),
                 .node = node_,
                 .backend_id = id,
                 .owner_id = info->owner_id,
                 .holder_kind = "user",
                 .status = info->state,
                 .created_at = info->started_at,
                 .last_used_at = Now()};
  co_return co_await store_.Write([row](Transaction& write) -> Result<SandboxRow> {
    TRY_ASSIGN(auto there, write.Get<SandboxRow>(row.id));
    if (there && there->owner_id != row.owner_id) return tl::unexpected(NoSuchSandbox(row.id));
    if (there) return std::move(*there);
    TRY(write.Insert(row));
    return row;
  });
}

Status Sandboxes::CheckHere(const SandboxRow& row) const {
  if (row.node.empty() || row.node == node_ || !Lives(row)) return {};
  return tl::unexpected(AtServer(row.id, row.node));
}

Task<Result<SandboxRow>> Sandboxes::FindLive(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(SandboxRow row, co_await Find(std::move(owner_id), id));
  if (!Lives(row))
    co_return Fail(Code::kFailedPrecondition, "sandbox '{}' has ended: {}", id,
                   row.last_error.empty() ? row.status : row.last_error);
  CO_TRY(CheckHere(row));
  co_return row;
}

Task<Result<SandboxRow>> Sandboxes::FindSettled(std::string owner_id, std::string id) {
  auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(config_.create_timeout_ms * 2);
  for (;;) {
    CO_TRY_ASSIGN(SandboxRow row, co_await FindLive(owner_id, id));
    // It may have been resumed behind our back, by E2B's own routes.
    if (row.status == "paused" && !busy_.contains(row.id)) {
      auto info = co_await provider_.Get(row.owner_id, row.backend_id);
      if (!info || info->state != "running") co_return row;
      CO_TRY(co_await Move(row, {"paused"}, "running"));
      continue;
    }
    bool changing = row.status == "pausing" || row.status == "resuming";
    if (!changing || !busy_.contains(row.id) || std::chrono::steady_clock::now() > deadline)
      co_return row;
    co_await SleepFor(kSettleInterval);
  }
}

Task<Result<SandboxState>> Sandboxes::Get(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(SandboxRow row, co_await FindRow(std::move(owner_id), std::move(id)));
  SandboxState state{.row = row, .backend_state = "terminated", .checked_at = Now()};
  if (!Lives(row)) co_return state;
  state.backend_state = "unknown";
  if (row.backend_id.empty() || !CheckHere(row)) co_return state;
  auto info = co_await provider_.Get(row.owner_id, row.backend_id);
  if (info) {
    state.backend_state = info->state;
    state.started_at = info->started_at;
    state.ends_at = info->ends_at;
    bool settled = row.status == "running" || row.status == "paused";
    if (settled && row.status != info->state) {
      (void)co_await Move(row, {row.status}, info->state);
      state.row.status = info->state;
    }
  } else if (info.error().code() == Code::kNotFound) {
    CO_TRY(co_await WriteEnd(row, "terminated", "gone"));
    CO_TRY_ASSIGN(state.row, co_await FindRow("", row.id));
    state.backend_state = "terminated";
  } else {
    state.row.last_error = info.error().message();
  }
  co_return state;
}

Task<Result<SandboxList>> Sandboxes::List(SandboxFilter filter) {
  co_return co_await store_.Read([filter](Transaction& read) -> Result<SandboxList> {
    Select<SandboxRow> select;
    if (!filter.owner_id.empty()) select.Eq(&SandboxRow::owner_id, filter.owner_id);
    if (!filter.status.empty()) select.Eq(&SandboxRow::status, filter.status);
    if (!filter.holder_kind.empty()) select.Eq(&SandboxRow::holder_kind, filter.holder_kind);
    if (!filter.holder_id.empty()) select.Eq(&SandboxRow::holder_id, filter.holder_id);
    if (!filter.task_id.empty()) select.Eq(&SandboxRow::task_id, filter.task_id);
    if (!filter.agent_id.empty()) select.Eq(&SandboxRow::agent_id, filter.agent_id);
    if (!filter.ended) select.IsNull(&SandboxRow::destroyed_at);
    SandboxList list;
    TRY_ASSIGN(list.total, read.Count(select));
    select.Order(&SandboxRow::created_at, /*descending=*/true).Order(&SandboxRow::id);
    TRY_ASSIGN(list.items, read.List(select.Limit(filter.limit).Offset(filter.offset)));
    return list;
  });
}

Task<Result<sdk::EnvdClient>> Sandboxes::EnvdOf(SandboxRow row) {
  auto envd = co_await provider_.Envd(row.owner_id, row.backend_id);
  if (envd) co_return envd;
  Error error = std::move(envd).error();
  if (error.code() == Code::kNotFound) CO_TRY(co_await WriteEnd(row, "terminated", "gone"));
  if (error.code() != Code::kFailedPrecondition) co_return tl::unexpected(std::move(error));
  (void)co_await Move(row, {"running"}, "paused");
  if (row.holder_kind != "session") co_return tl::unexpected(std::move(error));
  CO_TRY(co_await Resume(row.owner_id, row.id));
  co_return co_await provider_.Envd(row.owner_id, row.backend_id);
}

Task<Result<Sandboxes::Connection>> Sandboxes::Connect(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(SandboxRow row, co_await FindSettled(owner_id, id));
  if (row.status == "paused" && row.holder_kind == "session") {
    CO_TRY(co_await Resume(owner_id, id));
    CO_TRY_ASSIGN(row, co_await FindLive(owner_id, id));
  }
  if (row.status != "running")
    co_return Fail(Code::kFailedPrecondition, "not_running: sandbox '{}' is {}", id, row.status);
  CO_TRY_ASSIGN(sdk::EnvdClient envd, co_await EnvdOf(row));
  row.last_used_at = Now();
  CO_TRY(co_await store_.Write([row](Transaction& write) {
    return write.Set(Select<SandboxRow>().Eq(&SandboxRow::id, row.id),
                     {Assign(&SandboxRow::last_used_at, row.last_used_at)});
  }));
  co_return Connection{std::move(row), std::move(envd)};
}

// ---- changing ----------------------------------------------------------------------------------

Task<Status> Sandboxes::Move(SandboxRow row, std::vector<std::string> from, std::string to) {
  auto event = About(row, "sandbox_status", {{"status", to}});
  auto moved = co_await store_.Write(
      [row, from, to, event, &log = log_](Transaction& write) -> Result<int64_t> {
        auto mine = Select<SandboxRow>()
                        .Eq(&SandboxRow::id, row.id)
                        .In(&SandboxRow::status, from)
                        .IsNull(&SandboxRow::destroyed_at);
        TRY_ASSIGN(auto found, write.First(mine));
        if (!found) return 0;
        CountPause(*found, to, Now());
        TRY_ASSIGN(int64_t changed,
                   write.Set(mine, {Assign(&SandboxRow::status, to),
                                    Assign(&SandboxRow::paused_at, found->paused_at),
                                    Assign(&SandboxRow::paused_ms, found->paused_ms)}));
        if (changed > 0) TRY(log.Emit(write, event));
        return changed;
      });
  CO_TRY(moved);
  if (*moved == 0)
    co_return Fail(Code::kFailedPrecondition, "not_running: sandbox '{}' is changing its state",
                   row.id);
  co_return Status();
}

Result<bool> Sandboxes::EndRow(Transaction& write, const events::Log& log, const SandboxRow& row,
                               const std::string& status, const std::string& reason) {
  auto mine = Select<SandboxRow>().Eq(&SandboxRow::id, row.id).IsNull(&SandboxRow::destroyed_at);
  TRY_ASSIGN(auto found, write.First(mine));
  if (!found) return false;
  Time now = Now();
  CountPause(*found, status, now);
  TRY(write.Set(
      mine, {Assign(&SandboxRow::status, status), Assign(&SandboxRow::paused_at, found->paused_at),
             Assign(&SandboxRow::paused_ms, found->paused_ms),
             Assign(&SandboxRow::last_error, reason), Assign(&SandboxRow::destroyed_at, now)}));
  double seconds = std::chrono::duration<double>(now - row.created_at).count();
  TRY(log.Emit(
      write,
      status == "error" && row.backend_id.empty()
          ? About(row, "sandbox_error", {{"operation", "create"}, {"error_message", reason}})
          : About(row, "sandbox_terminated", {{"runtime_seconds", seconds}, {"reason", reason}})));
  return true;
}

Task<Status> Sandboxes::WriteEnd(SandboxRow row, std::string status, std::string reason) {
  co_await DropRenewal(row);
  CO_TRY_ASSIGN(bool ended, co_await store_.Write([=, &log = log_](Transaction& write) {
    return EndRow(write, log, row, status, reason);
  }));
  if (ended) Stopped(row);
  co_return Status();
}

Task<Status> Sandboxes::SetError(SandboxRow row, std::string operation, std::string message) {
  auto event = About(row, "sandbox_error", {{"operation", operation}, {"error_message", message}});
  CO_TRY(co_await store_.Write([row, message, event,
                                &log = log_](Transaction& write) -> Result<int64_t> {
    auto mine = Select<SandboxRow>().Eq(&SandboxRow::id, row.id).IsNull(&SandboxRow::destroyed_at);
    TRY_ASSIGN(int64_t changed, write.Set(mine, {Assign(&SandboxRow::status, "error"),
                                                 Assign(&SandboxRow::last_error, message)}));
    if (changed > 0) TRY(log.Emit(write, event));
    return changed;
  }));
  co_return Status();
}

Task<Status> Sandboxes::Pause(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(SandboxRow row, co_await FindSettled(std::move(owner_id), std::move(id)));
  if (row.status == "paused") co_return Status();
  Busy busy(busy_, row.id);
  CO_TRY(co_await Move(row, {"running"}, "pausing"));
  // Whoever listens inside for it has to let go before it is saved.
  Stopped(row);
  Status paused = co_await provider_.Pause(row.owner_id, row.backend_id);
  if (!paused && paused.error().code() == Code::kNotFound)
    CO_TRY(co_await WriteEnd(row, "terminated", "gone"));
  else
    CO_TRY(co_await Move(row, {"pausing"}, paused ? "paused" : "running"));
  co_return paused;
}

Task<Status> Sandboxes::Resume(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(SandboxRow row, co_await FindSettled(std::move(owner_id), std::move(id)));
  bool was_paused = row.status == "paused";
  Busy busy(busy_, row.id);
  if (was_paused)
    CO_TRY(co_await Move(row, {"paused"}, "resuming"));
  else if (row.status != "running")
    co_return Fail(Code::kFailedPrecondition, "not_running: sandbox '{}' is {}", row.id,
                   row.status);
  Status resumed = co_await provider_.Resume(row.owner_id, row.backend_id,
                                             std::chrono::seconds(config_.task_sandbox_timeout_s));
  if (!resumed && resumed.error().code() == Code::kNotFound)
    CO_TRY(co_await WriteEnd(row, "terminated", "gone"));
  else if (was_paused)
    CO_TRY(co_await Move(row, {"resuming"}, resumed ? "running" : "paused"));
  co_return resumed;
}

Task<Status> Sandboxes::Destroy(std::string owner_id, std::string id, std::string reason) {
  CO_TRY_ASSIGN(SandboxRow row, co_await Find(std::move(owner_id), std::move(id)));
  if (!Lives(row)) co_return Status();
  auto done = co_await sandbox::Shield<bool>(
      operations_, "destroy a sandbox",
      [](Sandboxes& all, SandboxRow which, std::string why) -> Task<Result<bool>> {
        CO_TRY(co_await all.DestroyRow(std::move(which), std::move(why)));
        co_return true;
      }(*this, std::move(row), std::move(reason)));
  CO_TRY(done);
  co_return Status();
}

Task<Status> Sandboxes::DestroyRow(SandboxRow row, std::string reason) {
  Busy busy(busy_, row.id);
  CO_TRY(co_await store_.Write([row](Transaction& write) {
    return write.Set(
        Select<SandboxRow>().Eq(&SandboxRow::id, row.id).IsNull(&SandboxRow::destroyed_at),
        {Assign(&SandboxRow::status, "terminating")});
  }));
  if (!CheckHere(row)) co_return Status();  // who has it goes on
  Stopped(row);
  if (row.backend_id.empty()) {
    co_await KillByRow(row.owner_id, row.id);
  } else {
    Status killed = co_await provider_.Kill(row.owner_id, row.backend_id);
    if (!killed && killed.error().code() != Code::kNotFound) co_return killed;
  }
  co_return co_await WriteEnd(std::move(row), "terminated", std::move(reason));
}

}  // namespace caisson::work

#include "terminal/terminals.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/id.h"
#include "base/log.h"

namespace caisson::terminal {
namespace {

namespace json = boost::json;
using store::Assign;
using store::Select;
using store::TerminalRow;
using store::Transaction;

constexpr std::chrono::seconds kSweepInterval{60};
constexpr std::chrono::seconds kUseInterval{30};
constexpr std::chrono::milliseconds kEndInterval{500};
constexpr int kEndChecks = 20;
constexpr std::chrono::milliseconds kAskTimeout{10'000};

Error NoSuchTerminal(const std::string& id) {
  return Error(Code::kNotFound, fmt::format("terminal '{}' does not exist, or has ended", id));
}

store::EventRow About(const TerminalRow& row, std::string type, json::object data) {
  data["terminal_id"] = row.id;
  store::EventRow event;
  event.type = std::move(type);
  event.owner_id = row.owner_id;
  event.sandbox_id = row.sandbox_id;
  event.data = json::serialize(data);
  return event;
}

// The row of a new shell, unless the sandbox has as many as it may.
Status AddRow(Transaction& write, const TerminalRow& row, int64_t most, const events::Log& log) {
  TRY_ASSIGN(int64_t there,
             write.Count(Select<TerminalRow>().Eq(&TerminalRow::sandbox_id, row.sandbox_id)));
  if (there >= most)
    return Fail(Code::kResourceExhausted,
                "this sandbox has {} terminals, more are not allowed: end one of them", there);
  TRY(write.Insert(row));
  TRY(log.Emit(write, About(row, "terminal_opened", {})));
  return {};
}

}  // namespace

// ---- a place at a shell ---------------------------------------------------------------------

Seat::Seat(Terminals& all, std::shared_ptr<Terminal> terminal, bool reattached)
    : all_(all), terminal_(std::move(terminal)), reattached_(reattached) {
  ++terminal_->seats;
}

Seat::~Seat() {
  Leave();
  if (--terminal_->seats == 0)
    all_.tasks_.Spawn("a terminal was left", all_.Left(terminal_->row.id));
}

void Seat::Attach(Viewer& viewer) {
  viewer_ = &viewer;
  terminal_->Attach(viewer);
}

void Seat::Leave() {
  if (viewer_) terminal_->Detach(*std::exchange(viewer_, nullptr));
}

Task<Status> Seat::Send(std::string input) {
  terminal_->active = true;
  co_await all_.MarkUsed(terminal_);
  std::shared_ptr<sdk::Pty> pty = terminal_->pty();
  if (!pty) co_return tl::unexpected(NoSuchTerminal(terminal_->row.id));
  co_return co_await pty->Send(std::move(input));
}

Task<Status> Seat::Resize(sdk::PtySize size) {
  std::shared_ptr<sdk::Pty> pty = terminal_->pty();
  if (!pty) co_return tl::unexpected(NoSuchTerminal(terminal_->row.id));
  co_return co_await pty->Resize(size);
}

// ---- all of them ----------------------------------------------------------------------------

Terminals::Terminals(asio::any_io_executor executor, Options options, store::Store& store,
                     events::Log& log, work::Sandboxes& sandboxes)
    : executor_(executor),
      options_(options),
      store_(store),
      log_(log),
      sandboxes_(sandboxes),
      tasks_(executor) {}

Terminals::~Terminals() = default;

void Terminals::Start() { tasks_.Spawn("care for terminals", Care()); }

Task<void> Terminals::Stop() {
  EndViewers();
  co_await tasks_.Stop();
}

void Terminals::EndViewers() {
  for (const auto& [id, terminal] : live_)
    terminal->EndViewers({.kind = Ending::Kind::kStopping, .message = "the server stops"});
}

Task<Result<std::unique_ptr<Seat>>> Terminals::Open(std::string owner_id, std::string sandbox_id,
                                                    sdk::PtyCommand command) {
  CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect(std::move(owner_id), sandbox_id));
  TerminalRow row{.id = RandomId("t_", 20),
                  .owner_id = connection.row.owner_id,
                  .sandbox_id = connection.row.id,
                  .created_at = Now()};
  row.seen_at = row.created_at;
  struct Opening {
    std::set<std::string>& all;
    const std::string id;
    ~Opening() { all.erase(id); }
  } opening{opening_, row.id};
  opening_.insert(row.id);
  co_return co_await Begin(connection, std::move(row), std::move(command));
}

Task<Result<std::unique_ptr<Seat>>> Terminals::Begin(const work::Sandboxes::Connection& connection,
                                                     TerminalRow row, sdk::PtyCommand command) {
  auto add = [row, most = options_.max_per_sandbox, &log = log_](Transaction& write) {
    return AddRow(write, row, most, log);
  };
  Status added = co_await store_.Write(add);
  if (!added && added.error().code() == Code::kResourceExhausted) {
    // Some of them may have ended while nobody followed.
    CO_TRY(co_await Living(connection.row));
    added = co_await store_.Write(add);
  }
  CO_TRY(std::move(added));
  auto pty = std::make_shared<sdk::Pty>(connection.envd, row.id);
  if (Status begun = co_await pty->Start(std::move(command)); !begun) {
    CO_TRY(co_await Forget(row, "failed"));
    co_return tl::unexpected(std::move(begun).error());
  }
  auto terminal = std::make_shared<Terminal>(executor_, options_, std::move(row));
  CO_TRY(co_await Run(terminal, std::move(pty)));
  co_return SeatAt(std::move(terminal), /*reattached=*/false);
}

Task<Result<std::unique_ptr<Seat>>> Terminals::Reopen(std::string owner_id, std::string sandbox_id,
                                                      std::string id) {
  CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect(std::move(owner_id), sandbox_id));
  CO_TRY_ASSIGN(TerminalRow row, co_await Find(connection.row.id, id));
  auto followed = [&] { return live_.contains(id) && live_.at(id)->followed(); };
  if (!followed()) {
    auto pty = std::make_shared<sdk::Pty>(connection.envd, id);
    Status found = co_await pty->Follow();
    if (!found && found.error().code() == Code::kNotFound) {
      CO_TRY(co_await Forget(std::move(row), "lost"));
      co_return tl::unexpected(NoSuchTerminal(id));
    }
    CO_TRY(std::move(found));
    // Somebody else may have been faster.
    if (!followed()) {
      auto [known, added] = live_.try_emplace(id);
      if (added) known->second = std::make_shared<Terminal>(executor_, options_, std::move(row));
      CO_TRY(co_await Run(known->second, std::move(pty)));
    }
  }
  auto terminal = live_.find(id);
  if (terminal == live_.end()) co_return tl::unexpected(NoSuchTerminal(id));
  co_return SeatAt(terminal->second, /*reattached=*/true);
}

Result<std::unique_ptr<Seat>> Terminals::SeatAt(std::shared_ptr<Terminal> terminal,
                                                bool reattached) {
  if (terminal->seats >= static_cast<size_t>(options_.max_viewers))
    return Fail(Code::kResourceExhausted, "{} look at this terminal already", terminal->seats);
  return std::make_unique<Seat>(*this, std::move(terminal), reattached);
}

Task<Status> Terminals::Run(std::shared_ptr<Terminal> terminal, std::shared_ptr<sdk::Pty> pty) {
  std::string id = terminal->row.id;
  int64_t pid = terminal->row.pid = pty->pid();
  live_[id] = terminal;
  terminal->Begin(std::move(pty));
  tasks_.Spawn("follow a terminal", RunToEnd(std::move(terminal)));
  CO_TRY(co_await store_.Write([id, pid](Transaction& write) {
    return write.Set(Select<TerminalRow>().Eq(&TerminalRow::id, id),
                     {Assign(&TerminalRow::pid, pid)});
  }));
  co_return Status();
}

Task<void> Terminals::RunToEnd(std::shared_ptr<Terminal> terminal) {
  Ending ending = co_await terminal->Follow();
  const TerminalRow row = terminal->row;
  std::string reason = terminal->end_reason;
  if (ending.kind == Ending::Kind::kLost) {
    // Of a sandbox that was paused the shell will be there again.
    if (!co_await SandboxEnds(row)) co_return;
    reason = "sandbox_ended";
  }
  if (Status gone = co_await Forget(row, reason, ending.exit_code); !gone)
    LogWarn("the end of a terminal was not written down",
            {{"terminal", row.id}, {"error", gone.error().message()}});
}

// ---- rows -----------------------------------------------------------------------------------

Task<bool> Terminals::SandboxEnds(TerminalRow row) {
  // What ends takes a moment; if it takes longer, Sweep() finds it.
  for (int i = 0; i < kEndChecks; ++i) {
    auto sandbox = co_await sandboxes_.Get(row.owner_id, row.sandbox_id);
    if (!sandbox) co_return sandbox.error().code() == Code::kNotFound;
    if (sandbox->row.destroyed_at) co_return true;
    if (sandbox->row.status == "paused") co_return false;
    co_await SleepFor(kEndInterval);
  }
  co_return false;
}

Task<Result<TerminalRow>> Terminals::Find(std::string sandbox_id, std::string id) {
  CO_TRY_ASSIGN(auto row, co_await store_.Read(
                              [id](Transaction& read) { return read.Get<TerminalRow>(id); }));
  if (!row || row->sandbox_id != sandbox_id) co_return tl::unexpected(NoSuchTerminal(id));
  co_return std::move(*row);
}

Task<Result<std::vector<TerminalRow>>> Terminals::Living(work::SandboxRow sandbox) {
  CO_TRY_ASSIGN(auto rows, co_await store_.Read([id = sandbox.id](Transaction& read) {
    return read.List(Select<TerminalRow>()
                         .Eq(&TerminalRow::sandbox_id, id)
                         .Order(&TerminalRow::created_at)
                         .Order(&TerminalRow::id));
  }));
  if (rows.empty() || sandbox.destroyed_at) co_return rows;
  auto envd = co_await sandboxes_.provider().Envd(sandbox.owner_id, sandbox.backend_id);
  if (!envd) co_return rows;
  auto processes =
      co_await WithDeadline(kAskTimeout, "asking for processes", envd->ListProcesses());
  if (!processes) co_return rows;
  std::vector<TerminalRow> living;
  for (TerminalRow& row : rows) {
    bool runs = std::ranges::any_of(
        *processes, [&](const sdk::ProcessInfo& process) { return process.tag == row.id; });
    bool cared_for =
        opening_.contains(row.id) || (live_.contains(row.id) && live_.at(row.id)->followed());
    if (runs || cared_for)
      living.push_back(std::move(row));
    else
      CO_TRY(co_await Forget(std::move(row), "lost"));
  }
  co_return living;
}

Task<Result<std::vector<Terminals::Shown>>> Terminals::List(std::string owner_id,
                                                            std::string sandbox_id) {
  CO_TRY_ASSIGN(auto sandbox, co_await sandboxes_.Find(std::move(owner_id), std::move(sandbox_id)));
  CO_TRY_ASSIGN(auto rows, co_await Living(std::move(sandbox)));
  std::vector<Shown> list;
  for (TerminalRow& row : rows) {
    auto live = live_.find(row.id);
    size_t viewers = live == live_.end() ? 0 : live->second->seats;
    list.push_back({std::move(row), viewers});
  }
  co_return list;
}

Task<Status> Terminals::Forget(TerminalRow row, std::string reason, int exit_code) {
  json::object data{{"reason", reason}};
  if (reason == "exit") data["exit_code"] = exit_code;
  auto event = About(row, "terminal_ended", std::move(data));
  auto told = co_await store_.Write([row, event, &log = log_](Transaction& write) -> Result<bool> {
    TRY_ASSIGN(int64_t found, write.Delete(Select<TerminalRow>().Eq(&TerminalRow::id, row.id)));
    if (found > 0) TRY(log.Emit(write, event));
    return found > 0;
  });
  CO_TRY(std::move(told));
  live_.erase(row.id);
  co_return Status();
}

// ---- the end --------------------------------------------------------------------------------

Task<Status> Terminals::End(std::string owner_id, std::string sandbox_id, std::string id) {
  CO_TRY_ASSIGN(auto sandbox, co_await sandboxes_.Find(std::move(owner_id), std::move(sandbox_id)));
  CO_TRY_ASSIGN(TerminalRow row, co_await Find(sandbox.id, std::move(id)));
  co_return co_await Kill(std::move(row), std::move(sandbox), "request");
}

Task<Status> Terminals::Kill(TerminalRow row, work::SandboxRow sandbox, std::string reason) {
  if (sandbox.destroyed_at) co_return co_await Forget(std::move(row), "sandbox_ended");
  CO_TRY(sandboxes_.CheckHere(sandbox));
  if (auto live = live_.find(row.id); live != live_.end()) live->second->end_reason = reason;
  auto envd = co_await sandboxes_.provider().Envd(sandbox.owner_id, sandbox.backend_id);
  if (!envd && envd.error().code() == Code::kNotFound)
    co_return co_await Forget(std::move(row), "sandbox_ended");
  CO_TRY(envd);
  sdk::Pty pty(*envd, row.id);
  Status killed = co_await pty.Kill();
  if (!killed && killed.error().code() != Code::kNotFound) co_return killed;
  co_return co_await Forget(std::move(row), std::move(reason));
}

Task<Status> Terminals::SetSeen(std::vector<std::string> ids) {
  if (ids.empty()) co_return Status();
  CO_TRY(co_await store_.Write([ids](Transaction& write) {
    return write.Set(Select<TerminalRow>().In(&TerminalRow::id, ids),
                     {Assign(&TerminalRow::seen_at, Now())});
  }));
  co_return Status();
}

Task<void> Terminals::Left(std::string id) {
  if (Status seen = co_await SetSeen({id}); !seen)
    LogWarn("who left a terminal was not written down",
            {{"terminal", id}, {"error", seen.error().message()}});
}

Task<void> Terminals::MarkUsed(std::shared_ptr<Terminal> terminal) {
  auto now = std::chrono::steady_clock::now();
  if (now - terminal->used_at < kUseInterval) co_return;
  terminal->used_at = now;
  (void)co_await sandboxes_.Connect(terminal->row.owner_id, terminal->row.sandbox_id);
}

Task<Status> Terminals::Sweep() {
  std::vector<std::string> seen;
  for (const auto& [id, terminal] : std::map(live_)) {
    if (terminal->seats == 0) continue;
    seen.push_back(id);
    // Looking on counts as use as long as there is something to see.
    if (std::exchange(terminal->active, false)) co_await MarkUsed(terminal);
  }
  CO_TRY(co_await SetSeen(std::move(seen)));
  struct Both {
    TerminalRow terminal;
    work::SandboxRow sandbox;
  };
  CO_TRY_ASSIGN(auto all, co_await store_.Read([](Transaction& read) -> Result<std::vector<Both>> {
    TRY_ASSIGN(auto rows, read.List(Select<TerminalRow>()));
    std::vector<Both> pairs;
    for (TerminalRow& row : rows) {
      TRY_ASSIGN(auto sandbox, read.Get<work::SandboxRow>(row.sandbox_id));
      // One that is forgotten has ended long ago.
      if (!sandbox) sandbox = work::SandboxRow{.id = row.sandbox_id, .destroyed_at = row.seen_at};
      pairs.push_back({std::move(row), std::move(*sandbox)});
    }
    return pairs;
  }));
  for (Both& both : all) {
    auto live = live_.find(both.terminal.id);
    bool looked_at = live != live_.end() && live->second->seats > 0;
    bool idle =
        options_.idle.count() > 0 && !looked_at && Now() - both.terminal.seen_at > options_.idle;
    if (!idle && !both.sandbox.destroyed_at) continue;
    if (!sandboxes_.CheckHere(both.sandbox)) continue;  // its server ends it
    Status ended = co_await Kill(both.terminal, both.sandbox, "idle");
    // That of a paused sandbox has to wait until it runs again.
    if (!ended && ended.error().code() != Code::kFailedPrecondition)
      LogWarn("an idle terminal could not be ended",
              {{"terminal", both.terminal.id}, {"error", ended.error().message()}});
  }
  co_return Status();
}

Task<void> Terminals::Care() {
  for (;;) {
    if (Status swept = co_await Sweep(); !swept)
      LogWarn("idle terminals could not be looked for", {{"error", swept.error().message()}});
    co_await SleepFor(kSweepInterval);
  }
}

}  // namespace caisson::terminal

#include "session/idle_watch.h"

#include <algorithm>

#include "base/log.h"
#include "session/status.h"

namespace caisson::session {
namespace {

using store::Assign;
using store::Select;
using store::SessionRow;
using store::Transaction;
using Sandbox = store::WorkSandboxRow;

constexpr int64_t kBatch = 100;  // of what is old, at one look; the rest has its turn at the next
constexpr int kRare = 12;        // every so many looks also for what is old
constexpr std::chrono::minutes kPatience{1};  // then the next look begins, and these go on
constexpr int kMostDoublings = 7;             // of the time between two attempts

Select<SessionRow> UnusedSince(std::vector<std::string> statuses, Time before) {
  return Select<SessionRow>()
      .In(&SessionRow::status, statuses)
      .Less(&SessionRow::last_used_at, before)
      .Order(&SessionRow::last_used_at);
}

// One that is gone was told by Look(); one that is just being used is none of ours.
bool Matters(const Error& error) {
  return error.code() != Code::kNotFound && error.code() != Code::kFailedPrecondition;
}

}  // namespace

IdleWatch::IdleWatch(asio::any_io_executor executor, work::Platform platform, Keeper& keeper,
                     Sessions& sessions, work::Sandboxes& sandboxes)
    : platform_(platform),
      keeper_(keeper),
      sessions_(sessions),
      sandboxes_(sandboxes),
      tasks_(executor),
      care_(executor) {}

void IdleWatch::Start() { tasks_.Spawn("look after idle sessions", Watch()); }

Task<void> IdleWatch::Stop() {
  co_await tasks_.Stop();
  co_await care_.Stop();
}

Task<void> IdleWatch::Watch() {
  for (int looks = 0;; ++looks) {
    co_await SleepFor(std::chrono::milliseconds(platform_.config.session_check_interval_ms));
    co_await CheckIdle();
    if (looks % kRare == 0) co_await CheckOld();
  }
}

Task<std::vector<SessionRow>> IdleWatch::Find(Select<SessionRow> select) {
  auto rows = co_await platform_.store.Read([select](Transaction& tx) { return tx.List(select); });
  if (!rows) LogWarn("idle sessions cannot be looked for", {{"error", rows.error().message()}});
  co_return rows ? std::move(*rows) : std::vector<SessionRow>();
}

Task<void> IdleWatch::NoteWoken() {
  Status noted = co_await platform_.store.Write([this](Transaction& tx) -> Status {
    TRY_ASSIGN(auto running, tx.List(Select<Sandbox>()
                                         .Eq(&Sandbox::status, "running")
                                         .Eq(&Sandbox::holder_kind, "session")
                                         .IsNull(&Sandbox::destroyed_at)));
    for (const Sandbox& sandbox : running) {
      auto session = NeedSession(tx, "", sandbox.holder_id);
      if (!session || session->status != "paused") continue;
      session->sandbox_id = sandbox.id;
      session->last_used_at = Now();
      TRY(SetStatus(tx, platform_, *session, {"active", "traffic"}));
    }
    return {};
  });
  if (!noted) LogWarn("woken sessions cannot be noted", {{"error", noted.error().message()}});
}

Task<void> IdleWatch::CheckIdle() {
  co_await NoteWoken();
  if (platform_.config.session_idle_pause_s <= 0) co_return;
  Time limit = Now() - std::chrono::seconds(platform_.config.session_idle_pause_s);
  waiting_ = Due(co_await Find(UnusedSince({"active"}, limit)));
  size_t wanted = std::min(waiting_.size(), kAtOnce);
  for (size_t busy = care_.size(); busy < wanted; ++busy)
    care_.Spawn("put idle sessions away", CareForAll());
  co_await care_.Join(kPatience);
}

std::deque<SessionRow> IdleWatch::Due(std::vector<SessionRow> idle) {
  std::set<std::string> ids;
  for (const SessionRow& session : idle) ids.insert(session.id);
  std::erase_if(failures_, [&](const auto& one) { return !ids.contains(one.first); });
  std::deque<SessionRow> due, again;
  for (SessionRow& session : idle) {
    auto failed = failures_.find(session.id);
    if (in_care_.contains(session.id)) continue;
    if (failed == failures_.end())
      due.push_back(std::move(session));
    else if (Clock::now() >= failed->second.again)
      again.push_back(std::move(session));
  }
  due.insert(due.end(), std::make_move_iterator(again.begin()),
             std::make_move_iterator(again.end()));
  return due;
}

Task<void> IdleWatch::CareForAll() {
  while (!waiting_.empty()) {
    SessionRow session = std::move(waiting_.front());
    waiting_.pop_front();
    std::string id = session.id;
    in_care_.insert(id);
    Status done = co_await CareFor(std::move(session));
    in_care_.erase(id);
    if (done || !Matters(done.error())) {
      failures_.erase(id);
      continue;
    }
    LogWarn("an idle session cannot be paused",
            {{"session", id}, {"error", done.error().message()}});
    Failure& failure = failures_[id];
    int64_t pause = platform_.config.session_check_interval_ms
                    << std::min(++failure.times, kMostDoublings);
    failure.again = Clock::now() + std::chrono::milliseconds(pause);
  }
}

Task<Result<IdleWatch::Use>> IdleWatch::LastUse(SessionRow session) {
  CO_TRY_ASSIGN(auto message, co_await platform_.store.Read([id = session.id](Transaction& tx) {
    return Answering(tx, id);
  }));
  if (message) co_return Use{.last = Now()};
  CO_TRY_ASSIGN(auto state, co_await keeper_.Look(session.id));
  CO_TRY_ASSIGN(auto info,
                co_await sandboxes_.provider().Get(state.row.owner_id, state.row.backend_id));
  Time last = std::max(session.last_used_at, state.row.last_used_at);
  co_return Use{std::max(last, info.last_traffic_at.value_or(last)), info.ends_at};
}

Task<Status> IdleWatch::Extend(SessionRow session, Use use) {
  // Only when it is due: a provider may take this, too, for a use.
  auto idle = std::chrono::seconds(platform_.config.session_idle_pause_s);
  if (use.ends_at && *use.ends_at - Now() < 2 * idle) {
    CO_TRY_ASSIGN(auto row, co_await sandboxes_.FindByHolder("session", session.id));
    // One that has reached its longest life is put away by its provider, and wakes again.
    if (row)
      (void)co_await sandboxes_.provider().SetTimeout(
          row->owner_id, row->backend_id,
          std::chrono::seconds(platform_.config.task_sandbox_timeout_s));
  }
  CO_TRY(co_await platform_.store.Write([=](Transaction& tx) {
    return tx.Set(Select<SessionRow>()
                      .Eq(&SessionRow::id, session.id)
                      .Less(&SessionRow::last_used_at, use.last),
                  {Assign(&SessionRow::last_used_at, use.last)});
  }));
  co_return Status();
}

Task<Status> IdleWatch::CareFor(SessionRow session) {
  auto idle = std::chrono::seconds(platform_.config.session_idle_pause_s);
  CO_TRY_ASSIGN(Use use, co_await LastUse(session));
  if (Now() - use.last < idle) co_return co_await Extend(std::move(session), use);
  co_return co_await Retire(std::move(session), use.last);
}

Task<Status> IdleWatch::Retire(SessionRow session, Time last_used) {
  Status paused = co_await keeper_.Pause(session.id, "idle");
  const Config& config = platform_.config;
  if (paused || !Matters(paused.error()) || config.session_idle_end != "destroy" ||
      Now() - last_used < std::chrono::seconds(config.session_idle_end_s))
    co_return paused;
  LogWarn("an old session that cannot be paused is ended",
          {{"session", session.id}, {"error", paused.error().message()}});
  co_return co_await keeper_.End(session.id, "paused", "idle_end");
}

Task<void> IdleWatch::CheckOld() {
  const Config& config = platform_.config;
  for (const SessionRow& session :
       co_await Find(Select<SessionRow>()
                         .Eq(&SessionRow::status, "archived")
                         .Eq(&SessionRow::status_reason, std::string(kDeleting))
                         .Limit(kBatch)))
    (void)co_await sessions_.FinishDelete(session.id);
  if (config.session_idle_end == "destroy") {
    Time limit = Now() - std::chrono::seconds(config.session_idle_end_s);
    for (const SessionRow& session :
         co_await Find(UnusedSince({"paused"}, limit)
                           .Limit(kBatch)
                           .NotEq(&SessionRow::sandbox_id, "")
                           .NotEq(&SessionRow::status_reason, std::string(kResting))))
      (void)co_await keeper_.End(session.id, "paused", "idle_end");
  }
  if (config.session_archive_days > 0) {
    Time limit = Now() - std::chrono::days(config.session_archive_days);
    for (const SessionRow& session :
         co_await Find(UnusedSince({"paused", "error"}, limit).Limit(kBatch)))
      (void)co_await keeper_.End(session.id, "archived", "unused");
  }
}

}  // namespace caisson::session

#include "build/queue.h"

#include <algorithm>

#include "base/id.h"
#include "build/state.h"
#include "store/account_rows.h"

namespace caisson::build {
namespace {

using store::BuildRow;
using store::Select;
using store::Transaction;

constexpr int64_t kUsualDuration = 60;  // seconds, when none has been built yet
constexpr int64_t kSample = 20;         // builds that the wait is estimated from
constexpr int kMaxDaysAhead = 366;
// Builds of one step of Advance(); the others follow when these end.
constexpr int64_t kLook = 1'000;

const std::vector<std::string> kRunning = {"starting", "scaffold", "code", "deps", "checks"};

Time DayOf(Time time) { return NextDay(time) - std::chrono::days(1); }

// About how long one build takes.
Result<int64_t> UsualSeconds(Transaction& tx) {
  TRY_ASSIGN(auto done, tx.List(Select<BuildRow>()
                                    .Eq(&BuildRow::state, "ready")
                                    .Order(&BuildRow::enqueued_at, true)
                                    .Limit(kSample)));
  std::chrono::nanoseconds sum{0};
  int64_t count = 0;
  for (const BuildRow& row : done) {
    if (!row.started_at || !row.completed_at) continue;
    sum += *row.completed_at - *row.started_at;
    ++count;
  }
  if (count == 0) return kUsualDuration;
  return std::max<int64_t>(std::chrono::duration_cast<std::chrono::seconds>(sum).count() / count,
                           1);
}

}  // namespace

BuildQueue::BuildQueue(const Config& config, flow::Engine& flow, std::map<std::string, Tier> tiers)
    : config_(config), flow_(flow), tiers_(std::move(tiers)) {}

Tier BuildQueue::Find(const std::string& name) const {
  auto found = tiers_.find(name);
  if (found == tiers_.end()) found = tiers_.find(config_.build_tier);
  return found == tiers_.end() ? Tier{.name = config_.build_tier} : found->second;
}

Result<Tier> BuildQueue::TierOf(Transaction& tx, const std::string& owner_id) const {
  TRY_ASSIGN(auto user, tx.Get<store::UserRow>(owner_id));
  return Find(user && !user->tier.empty() ? user->tier : config_.build_tier);
}

// A scheduled build counts on its day, every other one on the day it came.
Result<int64_t> BuildQueue::UsedOn(Transaction& tx, const std::string& owner_id, Time day) const {
  Time end = day + std::chrono::days(1);
  auto of_owner = Select<BuildRow>().Eq(&BuildRow::owner_id, owner_id);
  auto came = of_owner, scheduled = of_owner;
  came.Greater(&BuildRow::enqueued_at, day - std::chrono::nanoseconds(1))
      .Less(&BuildRow::enqueued_at, end)
      .IsNull(&BuildRow::scheduled_for);
  scheduled.Greater(&BuildRow::scheduled_for, day - std::chrono::nanoseconds(1))
      .Less(&BuildRow::scheduled_for, end);
  TRY_ASSIGN(int64_t first, tx.Count(came));
  TRY_ASSIGN(int64_t second, tx.Count(scheduled));
  return first + second;
}

Status BuildQueue::Enter(Transaction& tx, BuildRow& row) const {
  TRY_ASSIGN(Tier tier, TierOf(tx, row.owner_id));
  row.tier = tier.name;
  row.state = "queued";
  TRY_ASSIGN(auto waiting, Waiting(tx));
  if (config_.build_queue > 0 && static_cast<int64_t>(waiting.size()) >= config_.build_queue) {
    TRY_ASSIGN(int64_t usual, UsualSeconds(tx));
    return Fail(Code::kResourceExhausted,
                "the server is busy: {} builds wait already; try again in {} minutes",
                waiting.size(), std::max<int64_t>(usual / 60, 1));
  }
  Time day = DayOf(row.enqueued_at);
  for (int ahead = 0; tier.per_day > 0 && ahead < kMaxDaysAhead; ++ahead) {
    TRY_ASSIGN(int64_t used, UsedOn(tx, row.owner_id, day));
    if (used < tier.per_day) break;
    day += std::chrono::days(1);
    row.state = "scheduled";
    row.scheduled_for = day;
  }
  return tx.Insert(row);
}

// By what their tiers add, then by age.
Result<std::vector<BuildRow>> BuildQueue::Waiting(Transaction& tx) const {
  TRY_ASSIGN(auto rows, tx.List(Select<BuildRow>()
                                    .Eq(&BuildRow::state, "queued")
                                    .Eq(&BuildRow::run_id, "")
                                    .Order(&BuildRow::enqueued_at)
                                    .Order(&BuildRow::id)
                                    .Limit(kLook)));
  std::ranges::sort(rows, [&](const BuildRow& a, const BuildRow& b) {
    auto place = [&](const BuildRow& row) {
      return std::tuple(-Find(row.tier).boost, row.enqueued_at, row.id);
    };
    return place(a) < place(b);
  });
  return rows;
}

Result<bool> BuildQueue::HasRoom(Transaction& tx, const BuildRow& row) const {
  Tier tier = Find(row.tier);
  auto of_owner = Select<BuildRow>().Eq(&BuildRow::owner_id, row.owner_id);
  // Those that have a run but have not begun take a place, too.
  auto running = of_owner, begun = of_owner;
  running.In(&BuildRow::state, kRunning);
  begun.Eq(&BuildRow::state, "queued").NotEq(&BuildRow::run_id, "");
  auto project_running = running, project_begun = begun;
  project_running.Eq(&BuildRow::project, row.project);
  project_begun.Eq(&BuildRow::project, row.project);
  TRY_ASSIGN(int64_t of_user, tx.Count(running));
  TRY_ASSIGN(int64_t more_of_user, tx.Count(begun));
  TRY_ASSIGN(int64_t of_project, tx.Count(project_running));
  TRY_ASSIGN(int64_t more_of_project, tx.Count(project_begun));
  bool user = tier.per_user <= 0 || of_user + more_of_user < tier.per_user;
  bool project = tier.per_project <= 0 || of_project + more_of_project < tier.per_project;
  return user && project;
}

Status BuildQueue::Start(Transaction& tx, BuildRow& row) const {
  row.run_id = RandomUuid();
  TRY(tx.Update(row));
  return flow_.StartRun(tx, {.id = row.run_id,
                             .definition = "build",
                             .owner_id = row.owner_id,
                             .input = {{"build_id", row.id}},
                             .priority = Find(row.tier).boost,
                             .user_key = row.owner_id});
}

Status BuildQueue::Advance(Transaction& tx) const {
  TRY_ASSIGN(auto due, tx.List(Select<BuildRow>()
                                   .Eq(&BuildRow::state, "scheduled")
                                   .Less(&BuildRow::scheduled_for, Now())
                                   .Limit(kLook)));
  for (BuildRow& row : due) TRY(MoveTo(tx, row, "queued"));
  TRY_ASSIGN(auto waiting, Waiting(tx));
  for (BuildRow& row : waiting) {
    TRY_ASSIGN(bool room, HasRoom(tx, row));
    if (room) TRY(Start(tx, row));
  }
  return {};
}

Result<BuildUsage> BuildQueue::UsageOf(Transaction& tx, const std::string& owner_id) const {
  TRY_ASSIGN(Tier tier, TierOf(tx, owner_id));
  Time now = Now();
  BuildUsage usage{.tier = tier.name, .limit = tier.per_day, .resets_at = NextDay(now)};
  TRY_ASSIGN(usage.used, UsedOn(tx, owner_id, DayOf(now)));
  return usage;
}

Result<BuildQueue::Turn> BuildQueue::TurnOf(Transaction& tx, const BuildRow& row) const {
  Turn turn;
  if (row.state == "scheduled" && row.scheduled_for) {
    auto left = std::chrono::duration_cast<std::chrono::seconds>(*row.scheduled_for - Now());
    turn.wait_s = std::max<int64_t>(left.count(), 0);
    return turn;
  }
  if (row.state != "queued" || !row.run_id.empty()) return turn;
  TRY_ASSIGN(auto waiting, Waiting(tx));
  auto found = std::ranges::find(waiting, row.id, &BuildRow::id);
  turn.position = found - waiting.begin() + 1;
  TRY_ASSIGN(int64_t usual, UsualSeconds(tx));
  turn.wait_s = turn.position * usual;
  return turn;
}

}  // namespace caisson::build

#include "work/start_queue.h"

#include "base/log.h"
#include "store/work_rows.h"
#include "work/start.h"

namespace caisson::work {
namespace {

using store::Select;
using store::TaskRow;
using store::Transaction;

// After so long all who wait are looked at: what no event tells (a new month's budget), and what
// was missed.
constexpr std::chrono::milliseconds kPatience{5'000};
constexpr int kMaxBatches = 100;  // of events that become one look

// Owners of tasks that wait.
Result<std::set<std::string>> Owners(Transaction& tx) {
  std::set<std::string> owners;
  TRY_ASSIGN(auto waiting,
             tx.List(Select<TaskRow>().NotNull(&TaskRow::queued_at).Order(&TaskRow::owner_id)));
  for (const TaskRow& task : waiting) owners.insert(task.owner_id);
  return owners;
}

// Their number is bounded when they are put into the queue.
Result<std::vector<TaskRow>> Waiting(Transaction& tx, const std::string& owner_id) {
  return tx.List(Select<TaskRow>()
                     .Eq(&TaskRow::owner_id, owner_id)
                     .NotNull(&TaskRow::queued_at)
                     .Order(&TaskRow::queued_at)
                     .Order(&TaskRow::id));
}

// Whom it waits for: tasks of which this is the same start one after the other.
std::string WaitsFor(const TaskRow& task) {
  if (task.agent_id) return "agent " + *task.agent_id;
  return task.squad_id ? "squad " + *task.squad_id : "anybody";
}

// The owners of everything that came, so that a burst of events is one look. Waits for the first.
Task<Result<std::set<std::string>>> Changed(events::Subscription& changes) {
  std::set<std::string> owners;
  CO_TRY_ASSIGN(auto batch, co_await changes.Next(kPatience));
  for (int i = 0; i < kMaxBatches && !batch.events.empty(); ++i) {
    for (const events::Event& event : batch.events) owners.insert(event.owner_id);
    CO_TRY_ASSIGN(batch, co_await changes.Next(std::chrono::milliseconds(0)));
  }
  co_return owners;
}

}  // namespace

StartQueue::StartQueue(asio::any_io_executor executor, Platform platform)
    : platform_(platform), tasks_(std::move(executor)) {}

void StartQueue::Start() { tasks_.Spawn("tasks that wait for an agent", Watch()); }

Task<void> StartQueue::Stop() { co_await tasks_.Stop(); }

Task<Result<StartQueue::Look>> StartQueue::StartReady(std::set<std::string> owners) {
  if (owners.empty()) {
    CO_TRY_ASSIGN(owners, co_await platform_.store.Read(Owners));
  }
  Look look;
  for (const std::string& owner : owners) CO_TRY(co_await StartOf(owner, look));
  if (look.started > 0) platform_.flow.Wake();
  co_return look;
}

Task<Status> StartQueue::StartOf(std::string owner_id, Look& look) {
  CO_TRY_ASSIGN(auto waiting, co_await platform_.store.Read(
                                  [owner_id](Transaction& tx) { return Waiting(tx, owner_id); }));
  std::set<std::string> busy;
  for (const TaskRow& task : waiting) {
    if (busy.contains(WaitsFor(task))) continue;
    ++look.tried;
    // Each in a transaction of its own: what one changes before it is refused must not stay.
    auto started = co_await platform_.store.Write([this, task](Transaction& tx) {
      return StartTask(tx, platform_,
                       {.owner_id = task.owner_id, .task_id = task.id, .when_free = true});
    });
    // What the owner has used up is missing for the others, too.
    if (!started && started.error().code() == Code::kResourceExhausted) break;
    if (started && started->queued) busy.insert(WaitsFor(task));
    if (started && !started->queued) ++look.started;
  }
  co_return Status();
}

Task<void> StartQueue::Watch() {
  events::Filter filter{
      .types = {"execution_completed", "agent_updated", "squad_updated", "task_updated"}};
  auto changes = co_await platform_.log.Follow(std::move(filter), std::nullopt);
  std::set<std::string> owners;  // none: of everybody
  std::chrono::steady_clock::time_point whole;
  for (;;) {
    auto now = std::chrono::steady_clock::now();
    if (now - whole >= kPatience) owners.clear();
    if (owners.empty()) whole = now;
    auto look = co_await StartReady(owners);
    if (!look)
      LogWarn("tasks that wait for an agent were not started", {{"error", look.error().message()}});
    owners.clear();
    if (changes) {
      auto changed = co_await Changed(**changes);
      if (changed) {
        owners = std::move(*changed);
        continue;
      }
    }
    co_await SleepFor(kPatience);
  }
}

}  // namespace caisson::work

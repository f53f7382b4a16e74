#include "events/log.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/log.h"
#include "events/losses.h"
#include "events/output_archiver.h"
#include "events/reader.h"
#include "events/recent.h"
#include "events/types.h"
#include "store/work_rows.h"

namespace caisson::events {
namespace {

using store::Select;

constexpr size_t kBatch = 200;           // events given to a reader at once
constexpr size_t kRead = 1'000;          // events read from the database at once
constexpr size_t kMaxGathered = 50'000;  // waiting to be written
constexpr std::chrono::milliseconds kGatherFor{40};
constexpr std::chrono::milliseconds kFlushPatience{30'000};
constexpr std::chrono::milliseconds kWritePatience{60'000};  // for a database that is away
// A nudge can be lost (a connection to PostgreSQL that breaks): looked at so often in any case.
constexpr std::chrono::milliseconds kPoll{1'000};
// Between two files of the archive, and two rounds.
constexpr std::chrono::milliseconds kArchivePause{200};
constexpr std::chrono::minutes kArchiveInterval{10};

bool Has(const std::vector<std::string>& list, const std::string& id) {
  return list.empty() || std::find(list.begin(), list.end(), id) != list.end();
}

Result<int64_t> EndOf(store::Transaction& transaction, bool newest) {
  TRY_ASSIGN(auto event, transaction.First(Select<Event>().Order(&Event::id, newest)));
  return event ? event->id : 0;
}

}  // namespace

bool Filter::Matches(const Event& event) const {
  return (owner_id.empty() || owner_id == event.owner_id) && Has(agent_ids, event.agent_id) &&
         Has(squad_ids, event.squad_id) && Has(task_ids, event.task_id) &&
         Has(execution_ids, event.execution_id) && Has(run_ids, event.run_id) &&
         Has(sandbox_ids, event.sandbox_id) && Has(session_ids, event.session_id) &&
         Has(build_ids, event.build_id) && Has(types, event.type);
}

class Log::Impl {
 public:
  Impl(Log& log, asio::any_io_executor executor, store::Store& store, const Config& config)
      : log_(log),
        store_(store),
        archive_(OutputArchive::DirectoryFor(config)),
        archiver_(store, archive_, std::chrono::hours(config.log_archive_hours)),
        recent_(static_cast<size_t>(std::max<int64_t>(config.sse_queue, 1))),
        nudged_(executor),
        arrived_(executor),
        gathered_(executor),
        flushed_(executor),
        tasks_(executor) {}

  Task<Status> Start() {
    CO_TRY_ASSIGN(int64_t last, co_await store_.Read([](store::Transaction& transaction) {
      return EndOf(transaction, true);
    }));
    recent_.Begin(last);
    store_.OnEvents([this] {
      nudge_ = true;
      nudged_.Notify();
    });
    tasks_.Spawn("reading events", ReadLoop());
    tasks_.Spawn("writing events", WriteLoop());
    tasks_.Spawn("archiving output", ArchiveLoop());
    co_return Status();
  }

  Task<void> Stop() {
    co_await Flush();
    store_.OnEvents({});
    stopping_ = true;
    arrived_.Notify();
    co_await tasks_.Stop();
  }

  void Gather(Event event) {
    if (waiting_.size() >= kMaxGathered) return Drop(event);
    if (event.at == Time()) event.at = Now();
    waiting_.push_back(std::move(event));
    gathered_.Notify();
  }

  Task<void> Flush() {
    auto deadline = std::chrono::steady_clock::now() + kFlushPatience;
    uint64_t wanted = written_ + waiting_.size() + in_hand_;
    flush_ = true;
    gathered_.Notify();
    while (written_ < wanted && co_await flushed_.Wait(deadline)) {
    }
  }

  // Reads what a reader needs that memory does not hold.
  Task<Result<std::vector<Event>>> ReadOld(const Filter& filter, int64_t& position) {
    // What is committed after this moment is in memory, or comes there; so the reader may go to
    // here when nothing matches.
    int64_t newest = recent_.last();
    auto select = SelectOf(filter).Greater(&Event::id, position).Order(&Event::id).Limit(kBatch);
    CO_TRY_ASSIGN(auto events, co_await List(select));
    if (!events.empty()) position = events.back().id;
    if (events.size() < kBatch) position = std::max(position, newest);
    co_return events;
  }

  // Also those whose text is in the archive.
  Task<Result<std::vector<Event>>> List(Select<Event> select) {
    return store_.Read(
        [this, select](store::Transaction& transaction) -> Result<std::vector<Event>> {
          TRY_ASSIGN(auto events, transaction.List(select));
          archive_.Restore(events);
          return events;
        });
  }

  Task<void> ReadLoop() {
    for (;;) {
      if (!nudge_) co_await nudged_.Wait(kPoll);
      nudge_ = false;
      auto select = Select<Event>()
                        .Greater(&Event::id, recent_.last())
                        .Order(&Event::id)
                        .Limit(static_cast<int64_t>(kRead));
      auto events = co_await store_.Read(
          [select](store::Transaction& transaction) { return transaction.List(select); });
      if (!events) {
        LogWarn("events could not be read; it is tried again",
                {{"error", events.error().message()}});
        co_await SleepFor(kPoll);
        continue;
      }
      nudge_ = nudge_ || events->size() == kRead;
      for (Event& event : *events) recent_.Add(std::move(event));
      if (!events->empty()) arrived_.Notify();
    }
  }

  Task<void> WriteLoop() {
    for (;;) {
      if (waiting_.empty()) co_await gathered_.Wait(kPoll);
      if (waiting_.empty()) continue;
      if (!flush_) co_await SleepFor(kGatherFor);
      flush_ = false;
      std::vector<Event> batch = std::move(waiting_);
      waiting_.clear();
      in_hand_ = batch.size();
      co_await WriteAll(std::move(batch));
      written_ += std::exchange(in_hand_, 0);
      flushed_.Notify();
    }
  }

  Task<void> WriteAll(std::vector<Event> batch) {
    const size_t own = batch.size();
    for (const Event& loss : losses_.Take()) batch.push_back(loss);
    auto shared = std::make_shared<const std::vector<Event>>(std::move(batch));
    auto give_up = std::chrono::steady_clock::now() + kWritePatience;
    for (;;) {
      Status done = co_await store_.Write([this, shared](store::Transaction& transaction) {
        return EmitAll(transaction, *shared);
      });
      if (done) co_return;
      LogError("events could not be written",
               {{"count", shared->size()}, {"error", done.error().message()}});
      Code code = done.error().code();
      bool passes = code == Code::kUnavailable || code == Code::kResourceExhausted;
      if (!passes || std::chrono::steady_clock::now() > give_up) {
        for (size_t i = 0; i < own; ++i) Drop((*shared)[i]);  // to be told with the next batch
        co_return;
      }
      co_await SleepFor(kPoll);
    }
  }

  // One that is not as it should be must not take the others with it.
  Status EmitAll(store::Transaction& transaction, const std::vector<Event>& events) const {
    for (const Event& event : events) {
      auto emitted = log_.Emit(transaction, event);
      if (emitted) continue;
      if (emitted.error().code() != Code::kInternal) return tl::unexpected(emitted.error());
      LogError("an event is dropped", {{"error", emitted.error().message()}});
    }
    return {};
  }

  Task<void> ArchiveLoop() {
    for (;;) {
      auto more = co_await archiver_.Some();
      if (!more)
        LogWarn("output could not be archived; it is tried again",
                {{"error", more.error().message()}});
      co_await SleepFor(more && *more ? kArchivePause : kArchiveInterval);
    }
  }

  void Drop(const Event& event) {
    ++dropped_;
    losses_.Add(event);
  }

  Log& log_;
  store::Store& store_;
  OutputArchive archive_;
  OutputArchiver archiver_;
  RecentEvents recent_;
  size_t subscriptions_ = 0;
  uint64_t dropped_ = 0;
  bool stopping_ = false;
  Condition nudged_, arrived_;

 private:
  Condition gathered_, flushed_;
  bool nudge_ = false, flush_ = false;
  std::vector<Event> waiting_;
  size_t in_hand_ = 0;
  uint64_t written_ = 0;
  Losses losses_;
  TaskGroup tasks_;
};

Subscription::Subscription(Log& log, Filter filter, int64_t position)
    : log_(log),
      filter_(std::move(filter)),
      position_(position),
      told_(!log.impl_->recent_.Covers(position)) {
  ++log_.impl_->subscriptions_;
}

Subscription::~Subscription() { --log_.impl_->subscriptions_; }

Task<Result<Subscription::Batch>> Subscription::Next(std::chrono::milliseconds patience) {
  Log::Impl& impl = *log_.impl_;
  auto deadline = std::chrono::steady_clock::now() + patience;
  Batch batch;
  for (;;) {
    if (impl.stopping_) co_return Fail(Code::kUnavailable, "the server is stopping");
    if (impl.recent_.Covers(position_)) {
      told_ = false;
      batch.events = impl.recent_.Take(filter_, position_, kBatch);
      if (!batch.events.empty()) co_return batch;
      if (!co_await impl.arrived_.Wait(deadline)) co_return batch;
      continue;
    }
    if (!std::exchange(told_, true)) batch.missed = impl.recent_.last() - position_;
    CO_TRY_ASSIGN(batch.events, co_await impl.ReadOld(filter_, position_));
    if (!batch.events.empty() || batch.missed > 0) co_return batch;
  }
}

Log::Log(asio::any_io_executor executor, store::Store& store, const Config& config)
    : impl_(std::make_unique<Impl>(*this, std::move(executor), store, config)) {}
Log::~Log() = default;

Task<Status> Log::Start() { return impl_->Start(); }
Task<void> Log::Stop() { return impl_->Stop(); }
void Log::Gather(Event event) { impl_->Gather(std::move(event)); }
Task<void> Log::Flush() { return impl_->Flush(); }

Result<int64_t> Log::Emit(store::Transaction& transaction, Event event) const {
  event.data = redactor_.Redact(event.data);
  boost::system::error_code ec;
  boost::json::value data = boost::json::parse(event.data, ec);
  if (ec || !data.is_object())
    return Fail(Code::kInternal, "the data of an event '{}' is no JSON object", event.type);
  TRY(CheckData(event.type, data.get_object()));
  if (event.at == Time()) event.at = Now();
  // What concerns a task concerns its squad, also where only the task is known.
  if (event.squad_id.empty() && !event.task_id.empty()) {
    TRY_ASSIGN(auto task, transaction.Get<store::TaskRow>(event.task_id));
    if (task) event.squad_id = task->squad_id.value_or("");
  }
  return transaction.Emit(std::move(event));
}

Task<void> Log::Publish(Event event) {
  Status done = co_await impl_->store_.Write(
      [this, event = std::move(event)](store::Transaction& transaction) -> Status {
        TRY(Emit(transaction, event));
        return {};
      });
  if (!done) LogError("an event could not be written", {{"error", done.error().message()}});
}

Task<Result<std::unique_ptr<Subscription>>> Log::Follow(Filter filter,
                                                        std::optional<int64_t> after_id) {
  // Memory may be a moment behind the log, so the log itself is asked where it ends.
  struct Ends {
    int64_t oldest = 0, newest = 0;
  };
  CO_TRY_ASSIGN(Ends ends,
                co_await impl_->store_.Read([](store::Transaction& transaction) -> Result<Ends> {
                  Ends found;
                  TRY_ASSIGN(found.oldest, EndOf(transaction, false));
                  TRY_ASSIGN(found.newest, EndOf(transaction, true));
                  return found;
                }));
  int64_t position = after_id.value_or(ends.newest);
  if (position > 0 && position + 1 < ends.oldest)
    co_return Fail(Code::kOutOfRange, "events up to {} were deleted; the oldest is {}",
                   ends.oldest - 1, ends.oldest);
  if (position > ends.newest)
    co_return Fail(Code::kOutOfRange, "there is no event {}; the newest is {}", position,
                   ends.newest);
  co_return std::unique_ptr<Subscription>(new Subscription(*this, std::move(filter), position));
}

Task<Result<std::vector<Event>>> Log::After(Filter filter, int64_t id, size_t count) {
  return impl_->List(SelectOf(filter)
                         .Greater(&Event::id, id)
                         .Order(&Event::id)
                         .Limit(static_cast<int64_t>(count)));
}

Task<Result<std::vector<Event>>> Log::Recent(Filter filter, size_t count) {
  auto select = SelectOf(filter).Order(&Event::id, true).Limit(static_cast<int64_t>(count));
  CO_TRY_ASSIGN(auto events, co_await impl_->List(std::move(select)));
  std::reverse(events.begin(), events.end());
  co_return events;
}

Log::Numbers Log::numbers() const {
  return {impl_->subscriptions_, impl_->recent_.last(), impl_->dropped_};
}

}  // namespace caisson::events

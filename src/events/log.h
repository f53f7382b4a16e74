// The event log: what is written to it reaches everybody who follows it, in order, without a hole.
// The rows are the truth; memory only saves reading them again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/config.h"
#include "events/redactor.h"
#include "store/store.h"

namespace caisson::events {

using Event = store::EventRow;

// Which events: all lists that are not empty must hold the event's id.
struct Filter {
  std::string owner_id;  // "" = of everybody (an administrator)
  std::vector<std::string> agent_ids, squad_ids, task_ids, execution_ids, run_ids, sandbox_ids,
      session_ids, build_ids;
  std::vector<std::string> types;  // empty: all

  bool Matches(const Event& event) const;
};

class Log;

// One reader. Next() gives events after the last one it gave, in order. The log outlives it.
class Subscription {
 public:
  ~Subscription();
  struct Batch {
    std::vector<Event> events;  // empty: `patience` passed without any
    // This reader is so far behind that memory does not hold what it needs next: about so many
    // events. They are in the log still and come with the next batches. Told once per fall.
    int64_t missed = 0;
  };
  Task<Result<Batch>> Next(std::chrono::milliseconds patience);
  // The id of the last event it has gone past.
  int64_t position() const { return position_; }

 private:
  friend class Log;
  Subscription(Log& log, Filter filter, int64_t position);

  Log& log_;
  Filter filter_;
  int64_t position_;
  bool told_ = false;  // that it fell behind
};

class Log {
 public:
  Log(asio::any_io_executor executor, store::Store& store, const Config& config);
  ~Log();
  Task<Status> Start();
  Task<void> Stop();

  // What a transaction emits goes through here, so that secrets are cut out of `data` and its
  // schema holds. Call it inside a store::Store::Write() job; `at` is filled in.
  Result<int64_t> Emit(store::Transaction& transaction, Event event) const;
  // The same in a transaction of its own, for facts that stand alone. Best effort: a failure is
  // logged, never returned to who did the work.
  Task<void> Publish(Event event);
  // For output that comes in many small pieces: gathered for a moment and written together, in
  // order. Bounded: what is too much is dropped, and an event says how much. Flush() waits until
  // all of it is written, so that what follows comes after it.
  void Gather(Event event);
  Task<void> Flush();

  // Follows from after `after_id` (0: from the beginning; nullopt: from now). kOutOfRange: what
  // comes after it was deleted already; the message names the oldest id there is.
  Task<Result<std::unique_ptr<Subscription>>> Follow(Filter filter,
                                                     std::optional<int64_t> after_id);
  // The first `count` events after `id` that match.
  Task<Result<std::vector<Event>>> After(Filter filter, int64_t id, size_t count);
  // The newest `count` events that match, oldest first.
  Task<Result<std::vector<Event>>> Recent(Filter filter, size_t count);

  Redactor& redactor() { return redactor_; }
  const Redactor& redactor() const { return redactor_; }
  struct Numbers {
    size_t subscriptions = 0;
    int64_t last_id = 0;
    uint64_t dropped = 0;  // of what was gathered
  };
  Numbers numbers() const;

 private:
  friend class Subscription;
  class Impl;
  Redactor redactor_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caisson::events

// Durable runs: a definition names steps, each step's result is stored when it is done, and a run
// goes on where it was after any crash. Exactly-once results, at-least-once effects: a step must be
// written so that running it again does no harm. docs/workflow.md has the whole of it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/async.h"
#include "base/config.h"
#include "flow/definition.h"
#include "store/store.h"

namespace caisson::flow {

class Runner;

struct StartOptions {
  std::string id;  // the run's; the same id twice is kAlreadyExists
  std::string definition;
  std::string owner_id;
  std::optional<std::string> task_id;
  std::string execution_id;
  json::object input;
  int64_t priority = 0;
  std::string repo_key, agent_key, user_key;
};

class Engine {
 public:
  Engine(asio::any_io_executor executor, store::Store& store, const Config& config);
  ~Engine();
  // Before Start(). A run whose definition is unknown or of another version is dead, with a text
  // that says so.
  void Define(Definition definition);
  Task<Status> Start();
  // Lets go of what runs: it is taken up again by the next server, at once. An engine destroyed
  // without it writes nothing more, like one that was killed.
  Task<void> Stop();

  // This and the next three: inside the caller's transaction, on the store's thread; nothing
  // happens before it is committed. Wake() afterwards.
  Status StartRun(store::Transaction& transaction, const StartOptions& options);
  // Wakes the step that waits for `key`, once: true. Else it is kept (events_retention_days) for a
  // step that will wait for it: false; one that is kept already stays as it is.
  Result<bool> Signal(store::Transaction& transaction, const std::string& key, json::object data);
  // Asks a run to stop: steps marked `always` still run, then it is "canceled". False: it has ended
  // or was asked already.
  Result<bool> Cancel(store::Transaction& transaction, const std::string& run_id,
                      const std::string& reason);
  // A run that is dead, failed or waits for its user goes on at `step` ("" = where it stopped) with
  // fresh attempts; results from there on are forgotten. kFailedPrecondition if it cannot.
  Status Redrive(store::Transaction& transaction, const std::string& run_id,
                 const std::string& step);
  // There may be something to do. On any thread.
  void Wake();
  // The signal that a run waits for whose step asked for its user.
  static std::string UserKey(const std::string& run_id) { return "run:" + run_id + ":user"; }

  struct Numbers {
    size_t running = 0;
    uint64_t done = 0, failed = 0, retried = 0;
  };
  Numbers numbers() const;

 private:
  std::shared_ptr<Runner> runner_;  // its coroutines hold it too
};

}  // namespace caisson::flow

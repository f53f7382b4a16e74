// What a run is made of: steps, what they get and how they end.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/async.h"
#include "store/flow_rows.h"

namespace caisson::flow {

namespace json = boost::json;

// What a failure means for the run.
enum class ErrorClass {
  kTransient,   // tried again, with growing waits
  kPersistent,  // the run is dead until somebody redrives it
  kUserAction,  // it waits until somebody answers
  kFatal,       // it has failed
};
std::string_view ErrorClassName(ErrorClass value);
// By the code: unavailable, deadline, aborted, resource exhausted are transient; internal and data
// loss are persistent: something is broken that somebody may mend; unauthenticated and permission
// denied ask the user; the rest is fatal. A step may say otherwise.
ErrorClass Classify(const Error& error);

// What a step gets.
struct StepContext {
  std::string run_id;
  std::string step;
  std::string owner_id;
  std::string task_id;       // "" if none
  std::string execution_id;  // "" if none
  int64_t attempt = 1;
  int64_t fence = 0;
  json::object input;                           // of the run
  std::map<std::string, json::object> results;  // of the steps that are done, by name
  json::object signal;  // of a step that waited: what came, {"timeout":true} if nothing did
  // A step is canceled (asio cancellation) when its run was asked to stop, when this server stops,
  // and when it is another's by now. True only in the first case: then what it started must end.
  std::function<bool()> canceled;
};

// How a step ended.
struct Outcome {
  enum class Kind { kDone, kWait, kFail } kind = Kind::kDone;
  json::object result;  // kDone
  // kWait: until Signal(key) or so long (0 = for ever); then the step is started again with
  // context.signal set. Of several that wait for one key, the first gets it.
  std::string wait_key;
  std::chrono::milliseconds wait{0};
  // kFail
  ErrorClass error_class = ErrorClass::kFatal;
  std::string error;
  std::optional<std::chrono::milliseconds> retry_after;
  // Written in the same transaction as the outcome, if it is set. May be called again, on the
  // store's thread.
  std::function<Status(store::Transaction&)> also;

  static Outcome Done(json::object result = {});
  static Outcome Wait(std::string key, std::chrono::milliseconds timeout);
  static Outcome Failed(const Error& error);
};

struct StepDefinition {
  std::string name;  // unique in the definition
  std::function<Task<Outcome>(StepContext)> run;
  std::chrono::milliseconds timeout{600'000};
  int64_t attempts = 0;  // 0 = flow_attempts
  // Runs also when an earlier step failed or the run was canceled (destroying a sandbox).
  bool always = false;
};

// The functions on transactions run on the store's thread and touch nothing but the database.
// With several servers on one database, a run that has a sandbox goes on where that is.
struct Definition {
  std::string name;
  int64_t version = 1;
  std::vector<StepDefinition> steps;
  // Called in the transaction that ends the run, whatever its state; may be called again.
  std::function<Status(store::Transaction&, const store::RunRow&)> finished;
  // The server that has what a run needs (store::Store::node()); "" = any can go on with it. Asked
  // whenever a step is about to begin.
  std::function<Result<std::string>(store::Transaction&, const store::RunRow&)> home;
  // That server is lost (node_lost_s): gives up what the run had there, so that it has no home.
  std::function<Status(store::Transaction&, const store::RunRow&, const std::string&)> leave;
  // Called in the transaction of every change of a step or of the run: emits events.
  std::function<Status(store::Transaction&, const store::RunRow&, const store::StepRow*)> changed;
};

}  // namespace caisson::flow

// Sockets into sandboxes, a few kept ready for each one in use, so that most requests need no trip
// to the engine process.
#pragma once

#include <memory>

#include "base/async.h"
#include "engine/client.h"
#include "sandbox/registry.h"

namespace caisson::sandbox {

class SocketCache {
 public:
  // At most `spares` are kept per sandbox. Fetching runs in `group`.
  SocketCache(engine::Engine& engine, TaskGroup& group, size_t spares,
              std::chrono::milliseconds timeout);

  // An unconnected socket; kNotFound if the sandbox is not running any more.
  Task<Result<UniqueFd>> Take(std::shared_ptr<Record> record);

 private:
  // Fetches a batch into the record's spares; one at a time per sandbox.
  Task<Status> Fetch(std::shared_ptr<Record> record);
  Task<void> FetchAhead(std::shared_ptr<Record> record);

  engine::Engine& engine_;
  TaskGroup& group_;
  const size_t batch_;
  const std::chrono::milliseconds timeout_;
  Condition fetched_;  // of any sandbox
};

}  // namespace caisson::sandbox

// A single-threaded loop over descriptors (epoll), for the engine's main process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

class EventLoop {
 public:
  static Result<std::unique_ptr<EventLoop>> Create();

  // Calls `ready` whenever `events` (EPOLLIN, EPOLLOUT) or a hang-up is there; level-triggered.
  // Watching a descriptor again changes what it is watched for. Unwatch before closing it.
  Status Watch(int fd, uint32_t events, std::function<void()> ready);
  void Unwatch(int fd);
  // Waits until something is ready or `deadline` passes, and calls what is ready.
  void RunOnce(std::chrono::steady_clock::time_point deadline);

 private:
  explicit EventLoop(UniqueFd epoll) : epoll_(std::move(epoll)) {}

  UniqueFd epoll_;
  // Shared, because a callback may unwatch its own descriptor while it runs.
  std::unordered_map<int, std::shared_ptr<std::function<void()>>> watched_;
};

}  // namespace caisson::engine

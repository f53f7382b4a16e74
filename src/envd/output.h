// The fan-out of one process's events to the clients that follow it, in bounded memory.
//
// Nobody follows: events are dropped, the process never waits. Somebody follows but does not read:
// its queue fills up and HasRoom() turns false, so the process's pipes are not read any more until
// that client reads on, or is dropped because its connection does not move.
#pragma once

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <string>

#include "base/async.h"

namespace caisson::envd {

// One event, already serialised; shared between all who follow.
using Event = std::shared_ptr<const std::string>;

class OutputHub;

// One client's place at a hub; gives it up when destroyed. Used by one coroutine.
class Subscriber {
 public:
  Subscriber(std::shared_ptr<OutputHub> hub, asio::any_io_executor executor);
  ~Subscriber();
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  // The next event; null when none came before `until`.
  Task<Event> Next(std::chrono::steady_clock::time_point until);

 private:
  friend class OutputHub;
  std::shared_ptr<OutputHub> hub_;
  asio::steady_timer wake_;
  std::deque<Event> queue_;
  size_t bytes_ = 0;
};

class OutputHub : public std::enable_shared_from_this<OutputHub> {
 public:
  // `buffer` bytes may wait for each client.
  OutputHub(asio::any_io_executor executor, size_t buffer)
      : executor_(executor), buffer_(buffer), room_(executor) {}

  std::unique_ptr<Subscriber> Subscribe();
  size_t subscribers() const { return subscribers_.size(); }
  // Gives the event to everybody, also beyond the bound: ask HasRoom() before reading more.
  void Publish(const Event& event);
  bool HasRoom() const;
  // Returns when there may be room, at the latest at `until`.
  Task<void> WaitForRoom(std::chrono::steady_clock::time_point until);
  // Lets WaitForRoom() return.
  void Wake() { room_.Notify(); }

 private:
  friend class Subscriber;
  asio::any_io_executor executor_;
  size_t buffer_;
  std::list<Subscriber*> subscribers_;
  Condition room_;
};

}  // namespace caisson::envd

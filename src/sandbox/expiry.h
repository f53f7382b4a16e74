// One timer for all ends: it waits for the earliest. Ends are wall-clock times; when the clock is
// set, they move along, so that everybody has the time that was asked for.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_map>

#include "base/async.h"
#include "base/time.h"

namespace caisson::sandbox {

class Expiry {
 public:
  using Expired = std::function<void(std::string id)>;
  using Moved = std::function<void(const std::string& id, std::chrono::nanoseconds by)>;
  using Clock = std::function<Time()>;

  // `expired` is called on the loop, once per id; the id is forgotten first. `moved`: the clock was
  // set by so much, and the end of this id moved along; nothing may be set in it. Tests bring their
  // own clock.
  Expiry(asio::any_io_executor executor, Expired expired, Moved moved, Clock clock = Now);

  // Sets or moves the end of `id`.
  void Set(const std::string& id, Time end);
  void Remove(const std::string& id);
  // Looks whether the clock was set. Whoever compares or makes an end with Now() calls it first, so
  // that no end is of the clock before.
  void FollowClock();

  // Runs until canceled.
  Task<void> Loop();

 private:
  struct Reading {
    Time wall;
    std::chrono::steady_clock::time_point steady;
  };
  Reading ReadClocks() const;

  const Expired expired_;
  const Moved moved_;
  const Clock clock_;
  Reading last_;
  Condition changed_;
  std::set<std::pair<Time, std::string>> ends_;
  std::unordered_map<std::string, Time> end_of_;
};

}  // namespace caisson::sandbox

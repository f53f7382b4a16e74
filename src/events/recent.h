// The newest events, in memory, shared by all readers.
#pragma once

#include <deque>
#include <vector>

#include "events/log.h"

namespace caisson::events {

class RecentEvents {
 public:
  explicit RecentEvents(size_t capacity) : capacity_(capacity) {}

  // Everything up to `id` is in the log and not here.
  void Begin(int64_t id) { floor_ = last_ = id; }
  // In order of their ids.
  void Add(Event event);

  // True if everything after `position` is here.
  bool Covers(int64_t position) const { return position >= floor_; }
  // Those after `position` that match, at most `limit`; moves `position` past all it looked at.
  std::vector<Event> Take(const Filter& filter, int64_t& position, size_t limit) const;
  int64_t last() const { return last_; }

 private:
  size_t capacity_;
  int64_t floor_ = 0, last_ = 0;
  std::deque<Event> events_;
};

}  // namespace caisson::events

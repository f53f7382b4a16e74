#include "events/recent.h"

#include <algorithm>

namespace caisson::events {

void RecentEvents::Add(Event event) {
  last_ = event.id;
  events_.push_back(std::move(event));
  while (events_.size() > capacity_) {
    floor_ = events_.front().id;
    events_.pop_front();
  }
}

std::vector<Event> RecentEvents::Take(const Filter& filter, int64_t& position, size_t limit) const {
  std::vector<Event> taken;
  auto next = std::upper_bound(events_.begin(), events_.end(), position,
                               [](int64_t id, const Event& event) { return id < event.id; });
  for (; next != events_.end() && taken.size() < limit; ++next) {
    position = next->id;
    if (filter.Matches(*next)) taken.push_back(*next);
  }
  return taken;
}

}  // namespace caisson::events

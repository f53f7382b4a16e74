// The sandboxes that run now, in memory: the truth for traffic and for quotas.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/async.h"
#include "sandbox/alarms.h"
#include "sandbox/manager.h"
#include "sandbox/means.h"

namespace caisson::sandbox {

// One run of a sandbox and what belongs to it. Shared, because coroutines hold it across awaits;
// `running` tells them whether it still is. A resumed sandbox gets a new one.
struct Record {
  store::SandboxRow row;
  Route route;
  bool running = true;

  std::map<Manager::GoneId, std::function<void()>> gone;  // see Manager::SubscribeGone
  std::deque<Sample> history;                             // oldest first (sampler.h)
  Means means;                                            // of more than these
  Alarms alarms;
  std::vector<UniqueFd> spare_sockets;  // socket_cache.h
  bool fetching_sockets = false;
  bool probing = false;                                                  // health.cc
  std::optional<std::chrono::steady_clock::time_point> unresponsive_at;  // of the last event
  // The last sign that somebody uses it (drain.cc).
  std::chrono::steady_clock::time_point active_at = std::chrono::steady_clock::now();
  int failed_pauses = 0;  // at the end of its time (pause.cc)
};

// A new record with its tokens; the row names the rest.
std::shared_ptr<Record> MakeRecord(store::SandboxRow row, std::string_view secret);
Info MakeInfo(const Record& record);

class Registry {
 public:
  void Add(std::shared_ptr<Record> record);
  // Null if there is none that runs.
  std::shared_ptr<Record> Find(std::string_view id) const;
  // Takes it out of traffic: it is not found any more, its spare sockets are closed, and everybody
  // who subscribed is told. False if that has happened before.
  bool Remove(Record& record);

  Manager::GoneId Subscribe(const std::string& id, std::function<void()> gone);
  void Unsubscribe(const std::string& id, Manager::GoneId handle);

  std::vector<std::shared_ptr<Record>> All() const;
  void ForEach(const std::function<bool(const Record&)>& until_true) const;
  size_t size() const { return records_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::shared_ptr<Record>, Hash, std::equal_to<>> records_;
  Manager::GoneId next_handle_ = 1;
};

}  // namespace caisson::sandbox

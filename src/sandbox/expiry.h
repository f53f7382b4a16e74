// One timer for all ends: it waits for the earliest.
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
  // `expired` is called on the loop, once per id; the id is forgotten first.
  Expiry(asio::any_io_executor executor, std::function<void(std::string id)> expired);

  // Sets or moves the end of `id`.
  void Set(const std::string& id, Time end);
  void Remove(const std::string& id);

  // Runs until canceled.
  Task<void> Loop();

 private:
  std::function<void(std::string)> expired_;
  Condition changed_;
  std::set<std::pair<Time, std::string>> ends_;
  std::unordered_map<std::string, Time> end_of_;
};

}  // namespace caisson::sandbox

// What one sandbox used over a long time: means of its samples, one for each interval.
#pragma once

#include <chrono>
#include <deque>

#include "sandbox/manager.h"

namespace caisson::sandbox {

class Means {
 public:
  // Makes the sample part of the mean of its interval; intervals begin at whole multiples of their
  // length since 1970. The newest `keep` of them are kept.
  void Add(const Sample& sample, std::chrono::seconds interval, size_t keep);
  // Oldest first, each with the time of the last sample in it. The last one still changes. The
  // share of CPUs, memory and disk are means; limits and counters are as they were last.
  const std::deque<Sample>& all() const { return means_; }

 private:
  std::deque<Sample> means_;
  int64_t interval_ = 0;  // the number of the last one
  int64_t samples_ = 0;   // in it
};

}  // namespace caisson::sandbox

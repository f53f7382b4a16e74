#include "sandbox/means.h"

namespace caisson::sandbox {

void Means::Add(const Sample& sample, std::chrono::seconds interval, size_t keep) {
  int64_t number = sample.usage.at.time_since_epoch() / interval;
  if (means_.empty() || number != interval_) {
    means_.push_back(sample);
    interval_ = number;
    samples_ = 1;
    while (means_.size() > keep) means_.pop_front();
    return;
  }
  ++samples_;
  Sample& mean = means_.back();
  // By differences: a sum of many sizes could overflow.
  mean.cpu_used_pct += (sample.cpu_used_pct - mean.cpu_used_pct) / static_cast<double>(samples_);
  engine::Usage usage = sample.usage;
  for (auto size : {&engine::Usage::memory_used_bytes, &engine::Usage::memory_cache_bytes,
                    &engine::Usage::disk_used_bytes})
    usage.*size = mean.usage.*size + (sample.usage.*size - mean.usage.*size) / samples_;
  mean.usage = usage;
}

}  // namespace caisson::sandbox

#include "engine/balance.h"

#include <algorithm>

namespace caisson::engine {
namespace {

constexpr double kCpu = 1e9;  // nanoseconds per second
constexpr double kBusy = 0.8 * kCpu;

}  // namespace

Balance::Rates Balance::Measure(const std::map<std::string, int64_t>& used,
                                Clock::duration passed) {
  std::erase_if(known_, [&](const auto& item) { return !used.contains(item.first); });
  const double seconds = std::chrono::duration<double>(passed).count();
  Rates rates;
  for (const auto& [id, total] : used) {
    auto [it, fresh] = known_.try_emplace(id);
    int64_t before = std::exchange(it->second.used, total);
    if (fresh || seconds <= 0 || total < before) continue;  // nothing to compare with
    rates[id] = static_cast<double>(total - before) / seconds;
  }
  return rates;
}

std::vector<Balance::Change> Balance::Update(const std::map<std::string, int64_t>& used,
                                             Clock::time_point now,
                                             const std::function<double(const Rates&)>& share) {
  const Clock::duration passed = now - std::exchange(at_, now);
  const Rates rates = Measure(used, passed);
  const double limit = share(rates);
  std::vector<Change> changes;
  for (const auto& [id, rate] : rates) {
    Known& known = known_.at(id);
    known.over = rate >= limit ? known.over + passed : Clock::duration(0);
    // Back at once: whoever waits for an answer now was quiet for a moment.
    bool busy = known.over >= after_;
    if (busy != std::exchange(known.busy, busy)) changes.push_back({id, busy});
  }
  return changes;
}

std::vector<Balance::Change> Balance::Rest() {
  std::vector<Change> changes;
  for (const auto& [id, known] : known_)
    if (known.busy) changes.push_back({id, false});
  known_.clear();
  return changes;
}

size_t CountActive(const Balance::Rates& cpu) {
  return static_cast<size_t>(
      std::ranges::count_if(cpu, [](const auto& item) { return item.second >= kCpuIdle; }));
}

double CpuShare(const Balance::Rates& cpu, double host_cpus, bool with_waits) {
  if (with_waits) return kBusy;
  const auto active = static_cast<double>(std::max<size_t>(CountActive(cpu), 1));
  return std::min(kBusy, host_cpus * kCpu / 2 / active);
}

}  // namespace caisson::engine

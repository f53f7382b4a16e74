#include "engine/disk_guard.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace caisson::engine {
namespace {

using std::chrono::milliseconds;

// Faster than this nobody fills a disk, all together.
constexpr double kFastest = 4e9;  // bytes per second
constexpr milliseconds kShortest{50}, kLongest{1'000};
// Who still writes must not be able to fill the rest within this time.
constexpr double kHorizon = 20;  // seconds
// The kernel writes by fits and starts: how a disk grew is looked at over so many seconds.
constexpr double kMemory = 2;
// One goes on, then it shows whether there is still enough for the next.
constexpr milliseconds kBetweenReleases{1'000};

constexpr int64_t kSlowWrites = 32 << 20;
// What waits in memory trickles on, or whoever waits for all disks of the host, the operator's
// `sync` for example, would wait until there is room. All of many that stand still must stay far
// from full.
constexpr int64_t kAlmostNoWrites = 64 << 10;

}  // namespace

int64_t DiskGuard::WritesAt(Pace pace) {
  if (pace == Pace::kHeld) return kAlmostNoWrites;
  return pace == Pace::kSlow ? kSlowWrites : 0;
}

DiskGuard::DiskGuard(int64_t floor, int64_t enough)
    : floor_(floor),
      slow_below_(2 * floor),
      fast_above_(4 * floor),
      enough_(std::max(enough, floor + floor / 4)),
      next_(floor > 0 ? Clock::now() : Clock::time_point::max()) {}

DiskGuard::Pace DiskGuard::PaceOf(const std::string& id) const {
  auto it = known_.find(id);
  return it == known_.end() ? Pace::kFree : it->second.pace;
}

bool DiskGuard::IsNear(int64_t free, Clock::time_point now) {
  auto until = std::chrono::duration<double>(static_cast<double>(free - slow_below_) / kFastest);
  auto wait = std::chrono::duration_cast<milliseconds>(until);
  next_ = now + std::clamp(wait, kShortest, kLongest);
  // How fast somebody is must be known when it matters.
  if (wait < kLongest || free < fast_above_) return true;
  bool all_free = std::all_of(known_.begin(), known_.end(),
                              [](auto& one) { return one.second.pace == Pace::kFree; });
  if (all_free) known_.clear();
  return !all_free;
}

void DiskGuard::Measure(const std::map<std::string, int64_t>& taken, Clock::time_point now) {
  const double passed = std::chrono::duration<double>(now - measured_).count();
  measured_ = now;
  std::map<std::string, Known> known;
  for (const auto& [id, bytes] : taken) {
    auto before = known_.find(id);
    Known& one = known[id];
    one.taken = bytes;
    if (before == known_.end()) continue;
    one.pace = before->second.pace;
    one.rate = before->second.rate;
    if (one.pace == Pace::kHeld) continue;  // remembered as it was
    const double grown = std::max(0.0, static_cast<double>(bytes - before->second.taken));
    const double share = 1 - std::exp(-passed / kMemory);
    one.rate += (grown / std::max(passed, 1e-3) - one.rate) * share;
  }
  known_ = std::move(known);
}

void DiskGuard::Update(int64_t free, const std::map<std::string, int64_t>& taken,
                       Clock::time_point now) {
  Measure(taken, now);
  if (free < floor_) Hold(free);
  if (free < slow_below_) Slow();
  if (free >= enough_ && now - released_ >= kBetweenReleases) LetGo(now);
  if (free >= fast_above_)
    for (auto& [id, one] : known_)
      if (one.pace == Pace::kSlow) one.pace = Pace::kFree;
}

void DiskGuard::Slow() {
  for (auto& [id, one] : known_)
    if (one.pace == Pace::kFree && one.rate > static_cast<double>(kSlowWrites))
      one.pace = Pace::kSlow;
}

void DiskGuard::Hold(int64_t free) {
  std::vector<Known*> writing;
  double all = 0;
  for (auto& [id, one] : known_) {
    if (one.pace == Pace::kHeld || one.rate <= 0) continue;
    writing.push_back(&one);
    all += one.rate;
  }
  std::sort(writing.begin(), writing.end(),
            [](const Known* a, const Known* b) { return a->rate > b->rate; });
  for (Known* one : writing) {
    if (all * kHorizon < static_cast<double>(free)) return;
    one->pace = Pace::kHeld;
    all -= one->rate;
  }
}

void DiskGuard::LetGo(Clock::time_point now) {
  auto calmest = known_.end();
  for (auto it = known_.begin(); it != known_.end(); ++it)
    if (it->second.pace == Pace::kHeld &&
        (calmest == known_.end() || it->second.rate < calmest->second.rate))
      calmest = it;
  if (calmest == known_.end()) return;
  released_ = now;
  calmest->second.rate = 0;
  calmest->second.pace = Pace::kSlow;  // much of what it has written may still wait
}

}  // namespace caisson::engine

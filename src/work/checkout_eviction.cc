#include "work/checkout_eviction.h"

#include <algorithm>

namespace caisson::work {
namespace {

using std::chrono::seconds;
using store::KeptCheckoutRow;

constexpr seconds kOften = std::chrono::minutes(10);
constexpr seconds kSeldom = std::chrono::hours(1);

// How long it stays after its last use.
seconds StaysFor(const Config& config, const KeptCheckoutRow& row) {
  if (row.gap_s < 0) return kSeldom;  // nobody can tell yet whether it is used again
  if (row.gap_s < kOften.count()) return seconds(config.checkout_cache_busy_s);
  if (row.gap_s <= kSeldom.count()) return seconds(config.checkout_cache_idle_s);
  return seconds(0);
}

}  // namespace

void SortByUse(std::vector<KeptCheckoutRow>& rows) {
  std::ranges::sort(rows, [](const KeptCheckoutRow& a, const KeptCheckoutRow& b) {
    return a.uses != b.uses ? a.uses > b.uses : a.last_used_at > b.last_used_at;
  });
}

std::vector<KeptCheckoutRow> Evicted(const Config& config, std::vector<KeptCheckoutRow> rows,
                                     Time now) {
  SortByUse(rows);
  std::vector<KeptCheckoutRow> gone;
  int64_t place = 0, kept = 0;
  for (KeptCheckoutRow& row : rows) {
    bool worth =
        place++ < config.checkout_cache_keep || now - row.last_used_at < StaysFor(config, row);
    if (worth && kept < config.checkout_cache_max)
      ++kept;
    else
      gone.push_back(std::move(row));
  }
  return gone;
}

}  // namespace caisson::work

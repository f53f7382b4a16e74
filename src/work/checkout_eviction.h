// Which kept checkouts have to go.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "store/checkout_rows.h"

namespace caisson::work {

// Most used first; of those that are used alike the one that was used last.
void SortByUse(std::vector<store::KeptCheckoutRow>& rows);

// Those of `rows` that are not worth their room at `now`. The checkout_cache_keep most used ones
// stay. Of the others one that was used twice within ten minutes stays for checkout_cache_busy_s
// after its last use, one that was used twice within an hour for checkout_cache_idle_s; one that
// nobody used for longer than an hour, then or since it was made, goes. Of more than
// checkout_cache_max the least used go.
std::vector<store::KeptCheckoutRow> Evicted(const Config& config,
                                            std::vector<store::KeptCheckoutRow> rows, Time now);

}  // namespace caisson::work

// Runs that nobody will look at any more.
#pragma once

#include "store/transaction.h"

namespace caisson::store {

// Deletes at most `most` runs that ended before `before`, with their steps, and returns how many.
// Never one of a task that is not over (done, failed, canceled).
Result<int64_t> DeleteOldRuns(Transaction& transaction, Time before, int64_t most);

}  // namespace caisson::store

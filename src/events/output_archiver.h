// Moves output that is old enough out of the event log's rows into the archive.
#pragma once

#include <chrono>

#include "base/async.h"
#include "events/output_archive.h"
#include "store/store.h"

namespace caisson::events {

class OutputArchiver {
 public:
  // `age` 0 = nothing is moved. All outlive it.
  OutputArchiver(store::Store& store, OutputArchive& archive, std::chrono::hours age)
      : store_(store), archive_(archive), age_(age), done_(archive.Settled()) {}

  // The next file, of a bounded size; whether there may be more. Also deletes files of events that
  // the log holds no longer. One call at a time.
  Task<Result<bool>> Some();

 private:
  struct Taken;
  Result<Taken> Take(store::Transaction& tx) const;

  store::Store& store_;
  OutputArchive& archive_;
  const std::chrono::hours age_;
  int64_t done_;  // the last event that was looked at
};

}  // namespace caisson::events

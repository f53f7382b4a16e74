// The audit log: a row for every call that changes something, written before its answer goes out.
// The store deletes rows that are too old.
#pragma once

#include <chrono>

#include "store/account_rows.h"

namespace caisson::api {

class Audit {
 public:
  // Whether this row is to be written. SECURITY: those who are not known could fill the disk with
  // refused calls, so only so many of theirs per minute are.
  bool Wants(const store::AuditRow& row);

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point minute_{};
  int unknown_ = 0;  // in this minute
};

}  // namespace caisson::api

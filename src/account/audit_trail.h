// Rows of the audit log that no answer waits for: they are written together, as soon as the ones
// before them are.
#pragma once

#include <vector>

#include "base/async.h"
#include "store/account_rows.h"
#include "store/store.h"

namespace caisson::account {

class AuditTrail {
 public:
  // `store` outlives it.
  AuditTrail(asio::any_io_executor executor, store::Store& store);

  // Should the database stand still for so long that ten thousand wait, more are lost; the log has
  // them, and so it has those that could not be written.
  void Add(store::AuditRow row);
  // Returns when everything is written.
  Task<void> Stop();

 private:
  Task<void> Write();

  store::Store& store_;
  std::vector<store::AuditRow> waiting_;
  bool writing_ = false;
  Condition written_;
  TaskGroup tasks_;
};

}  // namespace caisson::account

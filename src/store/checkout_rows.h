// Checkouts that are kept for the next task; work/kept_checkouts.h has the rules.
#pragma once

#include "store/table.h"

namespace caisson::store {

// A copy of a sandbox in which a repository was just cloned. The row is there before the copy and
// after it, so that no copy is ever left that nobody knows.
struct KeptCheckoutRow {
  std::string id;
  std::string installation;  // the server that has the copy
  std::string owner_id;      // SECURITY: nobody else's sandboxes are made from it
  std::string repository;    // its address
  std::string template_name;
  int64_t depth = 0;             // of the clone; 0: all of its history
  std::string state = "making";  // "making", "ready", "doomed": its copy is being deleted
  std::string snapshot;          // its id, "" until it is known
  int64_t bytes = 0;
  int64_t uses = 1;    // tasks that cloned or fetched it
  int64_t gap_s = -1;  // between the last two uses; -1: there was one
  Time made_at;
  Time last_used_at;

  static constexpr auto kTable = MakeTable(
      "kept_checkouts", Column{"id", &KeptCheckoutRow::id},
      Column{"installation", &KeptCheckoutRow::installation},
      Column{"owner_id", &KeptCheckoutRow::owner_id},
      Column{"repository", &KeptCheckoutRow::repository},
      Column{"template_name", &KeptCheckoutRow::template_name},
      Column{"depth", &KeptCheckoutRow::depth}, Column{"state", &KeptCheckoutRow::state},
      Column{"snapshot", &KeptCheckoutRow::snapshot}, Column{"bytes", &KeptCheckoutRow::bytes},
      Column{"uses", &KeptCheckoutRow::uses}, Column{"gap_s", &KeptCheckoutRow::gap_s},
      Column{"made_at", &KeptCheckoutRow::made_at},
      Column{"last_used_at", &KeptCheckoutRow::last_used_at});
};

}  // namespace caisson::store

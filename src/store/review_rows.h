// What is kept of tasks for those who look at them.
#pragma once

#include "store/table.h"

namespace caisson::store {

// What the last attempt at a task changed, kept when its sandbox is gone.
struct TaskChangesRow {
  std::string task_id;
  std::string execution_id;
  std::string base_sha;
  std::string head_sha;
  std::string branch;
  std::string files = "[]";  // a JSON array, as the API shows it
  std::string patch;         // bounded
  bool truncated = false;
  Time created_at;

  static constexpr auto kTable = MakeTable(
      "task_changes", Column{"task_id", &TaskChangesRow::task_id},
      Column{"execution_id", &TaskChangesRow::execution_id},
      Column{"base_sha", &TaskChangesRow::base_sha}, Column{"head_sha", &TaskChangesRow::head_sha},
      Column{"branch", &TaskChangesRow::branch}, Column{"files", &TaskChangesRow::files},
      Column{"patch", &TaskChangesRow::patch}, Column{"truncated", &TaskChangesRow::truncated},
      Column{"created_at", &TaskChangesRow::created_at});
};

// A link by which anybody may look at a task. SECURITY: of its token there is only the hash.
struct TaskShareRow {
  std::string id;
  std::string task_id;
  std::string token_hash;
  Time created_at;
  Time expires_at;

  static constexpr auto kTable = MakeTable("task_shares", Column{"id", &TaskShareRow::id},
                                           Column{"task_id", &TaskShareRow::task_id},
                                           Column{"token_hash", &TaskShareRow::token_hash},
                                           Column{"created_at", &TaskShareRow::created_at},
                                           Column{"expires_at", &TaskShareRow::expires_at});
};

}  // namespace caisson::store

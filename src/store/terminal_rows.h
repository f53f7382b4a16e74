// Shells that users have opened in sandboxes; terminal/ has the rules.
#pragma once

#include "store/table.h"

namespace caisson::store {

// There before its shell and until it has ended. The shell is found by the id, which is its tag.
struct TerminalRow {
  std::string id;
  std::string owner_id;
  std::string sandbox_id;  // a row of work_sandboxes
  int64_t pid = 0;         // inside; 0 until it is known
  Time created_at;
  Time seen_at;  // somebody looked at it then, or still did a little later

  static constexpr auto kTable = MakeTable(
      "terminals", Column{"id", &TerminalRow::id}, Column{"owner_id", &TerminalRow::owner_id},
      Column{"sandbox_id", &TerminalRow::sandbox_id}, Column{"pid", &TerminalRow::pid},
      Column{"created_at", &TerminalRow::created_at}, Column{"seen_at", &TerminalRow::seen_at});
};

}  // namespace caisson::store

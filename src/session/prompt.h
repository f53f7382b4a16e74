// The text that an agent gets for a message: what was said before, what is said now, how to work.
#pragma once

#include <string>
#include <vector>

#include "store/session_rows.h"

namespace caisson::session {

struct Talk {
  std::string text;                             // of the message
  std::string mode;                             // "build", "plan"
  std::string branch;                           // that is checked out, "" without a repository
  std::string instructions;                     // the agent's own
  std::vector<store::MessageRow> earlier = {};  // oldest first
};
// Bounded: of what was said long ago the beginning is left out.
std::string PromptFor(const Talk& talk);

}  // namespace caisson::session

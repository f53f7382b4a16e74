// What was asked of a further build, and how the change that came of it fits: from rows and files
// alone. docs/builds.md has the rules.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "build/file_change.h"

namespace caisson::build {

struct ChangeRequest {
  std::string build_id, parent_id;
  std::string change_description;
  int64_t iteration_number = 0;  // 1 = the first change of a project
  int64_t tier_limit = 0;        // iterations before somebody has to confirm more; 0 = unlimited
  // Which part of the changed lines is in files that have to do with the description, from 0 to 1.
  // Nothing as long as there are no files, or if the description has no telling word.
  std::optional<double> alignment_score;
  bool scope_creep_detected = false;   // it is less than a half
  std::vector<std::string> beside_it;  // paths of changes that have nothing to do with it
};

// Lower case, of four letters and more, without those that stand in every request.
std::set<std::string> TellingWords(std::string_view text);
// Sets the last three.
void Judge(ChangeRequest& request, const std::vector<FileDifference>& changes);

}  // namespace caisson::build

// What the model answers when it is asked for files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "build/file_change.h"

namespace caisson::build {

struct LlmAnswer {
  std::vector<FileChange> changes;  // at least one
  std::string note;                 // "" if there is none
};
// The model's own words: one JSON object {"changes": [...], "note": "..."}, perhaps in a code
// fence. kDataLoss with a message that helps the model to do better.
Result<LlmAnswer> ReadAnswer(std::string_view content);

}  // namespace caisson::build

// What the model is told.
#pragma once

#include <boost/json/array.hpp>

#include "build/runner.h"

namespace caisson::build {

// Messages of OpenAI's chat completions. Of very large projects only the names of files are told.
boost::json::array FirstMessages(const RunnerJob& job);
// Adds what was wrong with an answer.
void AddComplaint(boost::json::array& messages, std::string_view answer, std::string_view wrong);

}  // namespace caisson::build

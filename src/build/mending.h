// When the checks of a build fail its runner is asked to mend it, round after round: the steps
// mend-1, mend-2 ... of the workflow, which do nothing when there is nothing to mend.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "flow/definition.h"

namespace caisson::build {

constexpr int64_t kMaxFixes = 5;  // that a request may ask for
constexpr int64_t kUsualFixes = 2;

// "mend-1"; 0 if the step is none of these.
std::string MendStep(int64_t round);
int64_t RoundOf(std::string_view step);

// How many rounds a build may have.
int64_t FixesOf(const boost::json::object& options);
// How the log of a round begins.
std::string MendTitle(int64_t round, int64_t max);
// What went wrong before this round; "" = nothing did.
std::string FailureBefore(const flow::StepContext& context, int64_t round);

}  // namespace caisson::build

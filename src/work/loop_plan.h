// The plan of the built-in agent, as it tells it by the tool update_plan: the last one counts.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/error.h"

namespace caisson::work {

// {"steps":[{"title","status","files_to_modify"}]} as the event agent.plan has it: a status is
// pending, in_progress, completed or failed, paths are those of the working directory.
// kInvalidArgument, in words for a model.
Result<boost::json::array> ReadPlan(const boost::json::object& input);

}  // namespace caisson::work

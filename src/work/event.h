// Events about the things of this module, with the ids that listeners filter by.
#pragma once

#include <boost/json/object.hpp>

#include "store/event_row.h"
#include "store/work_rows.h"

namespace caisson::work {

namespace json = boost::json;

store::EventRow About(const store::TaskRow& task, std::string type, json::object data);
store::EventRow About(const store::AgentRow& agent, std::string type, json::object data);
store::EventRow About(const store::SquadRow& squad, std::string type, json::object data);
store::EventRow About(const store::ExecutionRow& execution, std::string type, json::object data);
store::EventRow About(const store::ApprovalRow& approval, std::string type, json::object data);

// The data of the events that say how something is now.
json::object TaskData(const store::TaskRow& task);
json::object AgentData(const store::AgentRow& agent);

}  // namespace caisson::work

// Events about sessions and their messages, with the ids that listeners filter by.
#pragma once

#include <boost/json/object.hpp>

#include "store/event_row.h"
#include "store/session_rows.h"

namespace caisson::session {

namespace json = boost::json;

store::EventRow About(const store::SessionRow& session, std::string type, json::object data);
// Those of an answer have its id as their execution, so that its output can be found again.
store::EventRow About(const store::SessionRow& session, const store::MessageRow& answer,
                      std::string type, json::object data);

// The data of the events that say how something is now.
json::object SessionData(const store::SessionRow& session);
json::object MessageData(const store::MessageRow& message);

}  // namespace caisson::session

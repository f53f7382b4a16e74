// What builds are called, and the events about them.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "store/build_rows.h"
#include "store/event_row.h"

namespace caisson::build {

namespace json = boost::json;

// "build_v0_3"; "" of a build that is not ready.
std::string VersionName(int64_t number);
// Nothing if it is no such name.
std::optional<int64_t> ParseVersion(std::string_view name);

store::EventRow About(const store::BuildRow& build, std::string type, json::object data);
// Of the event "build_updated".
json::object BuildData(const store::BuildRow& build);

}  // namespace caisson::build

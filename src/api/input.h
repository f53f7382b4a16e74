// What a client sent, checked before a handler sees it: query, body, sizes.
#pragma once

#include <boost/json/object.hpp>

#include "api/frame.h"
#include "api/refusal.h"
#include "api/schema.h"
#include "base/config.h"

namespace caisson::api {

// 404 for a part of the path that no id can be: not UTF-8, or with a NUL.
Checked<void> CheckParams(const http::PathParams& params);
// 422 for an unknown parameter, a wrong value, or one given twice that may not be.
Checked<void> CheckQuery(const http::Query& query, const std::vector<Parameter>& known);
// 415 unless it is JSON.
Checked<void> CheckContentType(const http::RequestHead& request);
// 400 malformed, 422 too deep or too large in one of its parts.
Checked<json::value> ParseJson(std::string_view text, const Config& config);
// The sizes that the parts of a body may have which holds files.
Config LimitsOfFiles(const Config& config);
// 422 naming the field.
Checked<void> CheckSchema(const Schemas& schemas, std::string_view name, json::value& value);

}  // namespace caisson::api

// The OpenAPI 3.1 document, made of what the routes say about themselves.
#pragma once

#include <boost/json/object.hpp>
#include <deque>
#include <string>
#include <string_view>

#include "api/frame.h"
#include "api/schema.h"

namespace caisson::api {

// An operation as it is served: under its own pattern, or another spelling of it.
struct Served {
  Operation operation;
  bool alias = false;
};

// The operationId of another spelling: "getThingAliasOldId" of getThing at /api/v1/old/{id}. Made
// of the path, so that it stays the same whatever other routes there are.
std::string AliasId(std::string_view id, std::string_view pattern);

boost::json::object MakeDocument(const std::deque<Served>& operations, const Schemas& schemas);

}  // namespace caisson::api

// The messages of /api/v1.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "sandbox/manager.h"

namespace caisson::api {

boost::json::object EncodeDetail(const sandbox::Detail& detail);
boost::json::object EncodeEvent(const store::SandboxEvent& event);
boost::json::object EncodeStorage(const sandbox::StorageUse& use);
// One document with all of it. SECURITY: made to be handed on, so it holds no token, no variable
// and no text of a setting.
boost::json::object EncodeDiagnosis(const sandbox::Diagnosis& diagnosis, const Config& config);

}  // namespace caisson::api

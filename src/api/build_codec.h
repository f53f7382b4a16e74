// Builds as /api/v1 shows them.
#pragma once

#include "api/frame.h"
#include "build/builds.h"
#include "build/previews.h"

namespace caisson::api {

json::object Encode(const build::BuildView& view);
json::object Encode(const std::vector<build::Builds::TimelinePart>& timeline);
json::object Encode(const build::FileDifference& difference);
json::object Encode(const store::BuildLogRow& line);
json::object Encode(const build::PreviewCheck& check);
json::object Encode(const build::Readiness& found);
json::object Encode(const build::ChangeRequest& request);
json::object Encode(const build::Handbook& handbook);

// From a body that was checked. kInvalidArgument: the files.
Result<build::NewBuild> ReadNewBuild(const json::object& body);

// Every schema of the routes for builds.
void AddBuildSchemas(Frame& frame);

}  // namespace caisson::api

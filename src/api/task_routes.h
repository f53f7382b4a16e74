// The routes of /api/v1 for tasks.
#pragma once

#include "api/frame.h"
#include "work/pull_request_watch.h"
#include "work/work.h"

namespace caisson::api {

// `work` outlives the frame.
void AddTaskRoutes(Frame& frame, work::Work& work);
// After AddTaskRoutes(). `watch` outlives the frame.
void AddRefreshRoute(Frame& frame, work::PullRequestWatch& watch);

}  // namespace caisson::api

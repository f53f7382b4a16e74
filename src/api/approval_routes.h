// The routes of /api/v1 for approvals.
#pragma once

#include "api/frame.h"
#include "work/work.h"

namespace caisson::api {

// `work` outlives the frame.
void AddApprovalRoutes(Frame& frame, work::Work& work);

}  // namespace caisson::api

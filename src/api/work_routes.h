// All routes of /api/v1 for the things of work/.
#pragma once

#include "api/agent_routes.h"
#include "api/approval_routes.h"
#include "api/cost_routes.h"
#include "api/squad_routes.h"
#include "api/task_routes.h"

namespace caisson::api {

inline void AddWorkRoutes(Frame& frame, work::Work& work) {
  AddTaskRoutes(frame, work);
  AddAgentRoutes(frame, work);
  AddSquadRoutes(frame, work);
  AddApprovalRoutes(frame, work);
  AddCostRoutes(frame, work);
}

}  // namespace caisson::api

// The routes of /api/v1 for squads.
#pragma once

#include "api/frame.h"
#include "work/work.h"

namespace caisson::api {

// `work` outlives the frame.
void AddSquadRoutes(Frame& frame, work::Work& work);

}  // namespace caisson::api

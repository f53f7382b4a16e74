// /api/v1/checkouts: the checkouts that are kept for the next task.
#pragma once

#include "api/frame.h"
#include "work/kept_checkouts.h"

namespace caisson::api {

// `kept` outlives the frame.
void AddCheckoutRoutes(Frame& frame, work::KeptCheckouts& kept);

}  // namespace caisson::api

// What the page keeps for its user: any JSON object, up to preferences_max_bytes.
#pragma once

#include "api/frame.h"
#include "store/store.h"

namespace caisson::api {

// All outlive the frame.
void AddPreferenceRoutes(Frame& frame, store::Store& store, const Config& config);

}  // namespace caisson::api

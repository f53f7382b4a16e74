// What a task has changed.
#pragma once

#include "api/frame.h"
#include "work/changes.h"

namespace caisson::api {

json::object Encode(const work::TaskChanges& changes);
// `changes` outlives the frame.
void AddChangeRoutes(Frame& frame, work::Changes& changes);

}  // namespace caisson::api

// What requests say about tasks.
#pragma once

#include "api/frame.h"
#include "work/tasks.h"

namespace caisson::api {

// Fields by the names of the schema NewTask; workflow_execute names some of the options itself.
work::NewTask ReadNewTask(const json::object& body);
work::TaskChange ReadTaskChange(const json::object& body);
void AddTaskSchemas(Frame& frame);

}  // namespace caisson::api

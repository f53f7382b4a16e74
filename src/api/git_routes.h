// The routes of /api/v1 for git in a sandbox, with the other spellings that clients use.
#pragma once

#include "api/frame.h"
#include "work/git_desk.h"

namespace caisson::api {

// `desk` outlives the frame.
void AddGitRoutes(Frame& frame, work::GitDesk& desk);

}  // namespace caisson::api

// The token that acts at GitHub in a user's name: given, known to be there, taken away, never
// shown.
#pragma once

#include "api/frame.h"
#include "work/authors.h"

namespace caisson::api {

// `authors` outlives the frame.
void AddGithubTokenRoutes(Frame& frame, work::Authors& authors);

}  // namespace caisson::api

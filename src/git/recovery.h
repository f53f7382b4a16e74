// What helps after a failure of git.
#pragma once

#include "git/failure.h"

namespace caisson::git {

// A sentence; "" for kNone and kOther.
std::string_view RecoveryOf(Failure failure);

}  // namespace caisson::git

// What a failed git command means, told from what it printed.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::git {

// kLocked: another git process works in the same repository.
enum class Failure { kNone, kAuth, kNetwork, kConflict, kNotFound, kRejected, kLocked, kOther };

// "auth", "network", "conflict", "not_found", "rejected", "locked", "other"; "" for kNone.
std::string_view FailureName(Failure failure);
// Of what git prints with LC_ALL=C.
Failure ClassifyStderr(std::string_view text);
// kUnauthenticated, kUnavailable, kAborted, kNotFound, kFailedPrecondition, kUnavailable, kUnknown.
Code CodeOf(Failure failure);

// The lines that say why, without progress and advice, at most `max` bytes.
std::string GitsOwnWords(std::string_view text, size_t max = 1000);

}  // namespace caisson::git

// Passwords and keys that a person types, or a program pipes in: never arguments, which every user
// of the machine can see.
#pragma once

#include <string>

#include "base/error.h"

namespace caisson::cli {

// One line of standard input, without showing it if that is a terminal (which gets the prompt).
Result<std::string> ReadSecret(const std::string& prompt);

}  // namespace caisson::cli

// Escape sequences of terminals in the output of programs.
#pragma once

#include <string>
#include <string_view>

namespace caisson::events {

// How long the escape sequence is that `text` begins with. One without an end hides nothing.
size_t EscapeLength(std::string_view text);
// The text as it is read: without escape sequences.
std::string WithoutEscapes(std::string_view text);

}  // namespace caisson::events

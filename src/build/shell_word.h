// A part of a shell command.
#pragma once

#include <string>
#include <string_view>

namespace caisson::build {

// One word for a shell, whatever is in it.
inline std::string ShellWord(std::string_view text) {
  std::string word = "'";
  for (char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace caisson::build

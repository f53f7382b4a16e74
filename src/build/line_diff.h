// Which lines of a text became which of another.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace caisson::build {

struct LineEdit {
  char kind = ' ';        // ' ' in both, '-' only before, '+' only after
  std::string_view line;  // with its end, if it has one
};

// Texts as lines, each with its end.
std::vector<std::string_view> SplitLines(std::string_view text);

// The fewest edits if they are found with `budget` steps, which are counted down. Else all lines
// between the first and the last difference are told as deleted and added.
std::vector<LineEdit> DiffLines(std::string_view before, std::string_view after, int64_t& budget);

}  // namespace caisson::build

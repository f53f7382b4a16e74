// Finding a text in what commands printed.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "events/output_lines.h"

namespace caisson::events {

struct OutputQuery {
  Filter filter;
  std::string text;    // anywhere in a line; the letters A to Z and a to z are alike
  std::string stream;  // "stdout", "stderr"; "" = both
  int64_t after = 0;   // from after this event on
  size_t limit = 1'000;
  std::chrono::milliseconds patience{0};
};

struct OutputHits {
  std::vector<OutputLine> lines;  // in the order of the log
  int64_t looked_at = 0;          // lines
  // `limit` or `patience` was reached: give it as `after` to go on.
  std::optional<int64_t> next;
};

// Stops behind the event in which `limit` is reached, so there can be some more.
Task<Result<OutputHits>> FindOutput(Reader& reader, OutputQuery query);

}  // namespace caisson::events

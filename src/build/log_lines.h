// Output in pieces becomes lines: whole, without colours for searching, without secrets, of bounded
// length. Any way of cutting the same output into pieces gives the same lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "events/redact_patterns.h"
#include "events/redactor.h"

namespace caisson::build {

struct LogLine {
  std::string text;  // without colours
  std::string raw;   // with them; "" if there are none, or if something was cut or taken out
};

class LogLines {
 public:
  // `redactor` knows the server's own secrets; keys and database addresses of any kind are cut out
  // as well.
  LogLines(const events::Redactor& redactor, size_t max_chars)
      : redactor_(redactor), max_chars_(max_chars) {}

  // Lines that are complete now. A carriage return in a line begins it anew, as on a terminal.
  std::vector<LogLine> Feed(std::string_view piece);
  // The output has ended: what is left.
  std::vector<LogLine> Finish();

 private:
  LogLine Make(std::string_view line) const;
  void Restart();

  const events::Redactor& redactor_;
  size_t max_chars_;
  std::string rest_;
  bool cut_ = false;       // the line in rest_ is longer than what is kept of it
  bool returned_ = false;  // it ended with a carriage return, and what follows is not known yet
};

// Without escape sequences and control characters (line ends and tabs stay); UTF-8.
std::string StripAnsi(std::string_view text);
using events::HoldsToken;
using events::RedactPatterns;

}  // namespace caisson::build

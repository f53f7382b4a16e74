// Lines that any agent may write to be understood; docs/agents.md.
#pragma once

#include "work/line_parser.h"

namespace caisson::work {

// {"caisson":"message"|"tool"|"file"|"usage"|"summary"|"error", ...}; other lines are output.
class CommandParser : public JsonLineParser {
 protected:
  void Object(const json::object& object) override;
};

}  // namespace caisson::work

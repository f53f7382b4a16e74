// Parsers of output that comes in lines.
#pragma once

#include "work/adapter.h"

namespace caisson::work {

// Cuts standard output into lines. A line longer than kMaxLine is left out as a whole.
class LineParser : public OutputParser {
 public:
  static constexpr size_t kMaxLine = 4 << 20;
  static constexpr size_t kMaxSummary = 8'000;

  std::vector<AgentEvent> Feed(sdk::Stream stream, std::string_view piece) override;
  AgentReport Finish() override;

 protected:
  // Without its end.
  virtual void Line(std::string_view line) = 0;
  void Emit(AgentEvent event) { events_.push_back(std::move(event)); }
  void Say(std::string text);

  AgentReport report_;

 private:
  std::vector<AgentEvent> events_;
  std::string line_;
  bool too_long_ = false;
};

// Lines that are JSON objects. Others are left out.
class JsonLineParser : public LineParser {
 protected:
  void Line(std::string_view line) override;
  virtual void Object(const json::object& object) = 0;
};

}  // namespace caisson::work

#include "cli/event_stream.h"

#include <utility>

namespace caisson::cli {
namespace {

constexpr size_t kMaxEvent = 4 << 20;

}  // namespace

std::vector<StreamEvent> EventStreamParser::Feed(std::string_view piece) {
  std::vector<StreamEvent> events;
  for (char c : piece) {
    if (c == '\n') {
      if (line_.ends_with('\r')) line_.pop_back();
      Line(line_, events);
      line_.clear();
    } else if (line_.size() < kMaxEvent) {
      line_ += c;
    }
  }
  return events;
}

void EventStreamParser::Line(std::string_view line, std::vector<StreamEvent>& events) {
  if (line.empty()) {
    if (!event_.data.empty() && event_.data.size() < kMaxEvent) events.push_back(std::move(event_));
    event_ = {};
    return;
  }
  size_t colon = line.find(':');
  std::string_view name = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "id") event_.id = value;
  if (name == "event") event_.type = value;
  if (name == "data" && event_.data.size() < kMaxEvent) {
    if (!event_.data.empty()) event_.data += '\n';
    event_.data += value;
  }
}

}  // namespace caisson::cli

// Server-sent events, read piece by piece.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::cli {

struct StreamEvent {
  std::string id;  // "" if it had none
  std::string type = "message";
  std::string data;
};

class EventStreamParser {
 public:
  // Pieces cut anywhere. An event longer than 4 MiB is left out.
  std::vector<StreamEvent> Feed(std::string_view piece);

 private:
  void Line(std::string_view line, std::vector<StreamEvent>& events);

  std::string line_;
  StreamEvent event_;
};

}  // namespace caisson::cli

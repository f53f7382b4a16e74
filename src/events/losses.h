// What had to be dropped from the log, counted for each thing it was about.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/event_row.h"

namespace caisson::events {

class Losses {
 public:
  void Add(const store::EventRow& event);
  // An event of type "log" for each thing that lost something since the last call: how many pieces,
  // lines and bytes of output are missing at this place.
  std::vector<store::EventRow> Take();

 private:
  struct Loss {
    store::EventRow like;  // the first that was dropped
    int64_t pieces = 0, lines = 0, bytes = 0;
  };
  std::map<std::string, Loss> losses_;
};

}  // namespace caisson::events

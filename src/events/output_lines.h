// What commands printed, as lines: events carry pieces that begin and end anywhere.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "events/reader.h"

namespace caisson::events {

// A line is named by the event it begins in and by how many lines end in that event before it:
// whoever knows the event knows the name, whatever came before.
struct OutputLine {
  int64_t event = 0;
  int64_t place = 0;
  bool is_stderr = false;
  std::string text;  // as a terminal shows it, without colours and without its end
  bool ends = true;  // false: a part of a very long line, the next part follows
};

// Gets one line after the other; false = it wants no more than those that are complete by now.
using TakeLine = std::function<bool(OutputLine)>;

class OutputLines {
 public:
  // Gives the lines that are complete with this event, which must be one of type "command_output".
  // False if `take` said so.
  bool Feed(const Event& event, const TakeLine& take);
  // Nothing more comes: gives the lines without an end.
  void Finish(const TakeLine& take);

 private:
  struct Open {
    OutputLine line;
    std::string raw;
  };
  static OutputLine Close(Open open, bool ends);
  // By command and stream.
  std::map<std::string, Open> open_;
};

// Goes through all output that matches, oldest first.
class OutputWalk {
 public:
  // From after the event `after`. Lines that have begun before and are not complete there are told
  // as well. The reader outlives it.
  OutputWalk(Reader& reader, Filter filter, int64_t after);

  struct Part {
    int64_t last = 0;   // the last event that was looked at
    bool over = false;  // there is no more
  };
  // Gives the lines of a bounded number of events, in the order in which they were completed.
  // `take` is called on another thread and must not refer to what ends with the caller.
  Task<Result<Part>> Next(TakeLine take);

 private:
  Task<Status> Prime();

  Reader& reader_;
  Filter filter_;
  int64_t position_;
  bool primed_ = false;
  // Shared with the store's thread.
  std::shared_ptr<OutputLines> lines_ = std::make_shared<OutputLines>();
};

}  // namespace caisson::events

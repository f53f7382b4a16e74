// What commands printed for a task, in a session or in a sandbox: searched, and as one text.
#pragma once

#include <string>
#include <vector>

#include "api/frame.h"
#include "events/reader.h"

namespace caisson::api {

class OutputRoutes {
 public:
  // Both outlive it.
  OutputRoutes(events::Reader& reader, store::Store& store) : reader_(reader), store_(store) {}

  // It outlives the frame.
  void Add(Frame& frame);

 private:
  // The output of what the path names; somebody else's does not exist.
  using Find = Task<Result<events::Filter>> (OutputRoutes::*)(const Call&);
  template <class Row>
  Task<Result<events::Filter>> FilterOf(const Call& call, std::string_view what,
                                        std::vector<std::string> events::Filter::* ids);
  Task<Result<events::Filter>> OfTask(const Call& call);
  Task<Result<events::Filter>> OfSession(const Call& call);
  Task<Result<events::Filter>> OfSandbox(const Call& call);

  void AddFor(Frame& frame, std::string_view pattern, std::string_view search_pattern,
              std::string_view id, std::string_view search_id, Find find);
  Answer Search(Call& call, Find find);
  Answer Download(Call& call, Find find);

  events::Reader& reader_;
  store::Store& store_;
};

}  // namespace caisson::api

// The log by pages, in either direction. Texts that are in the archive are put back.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "events/log.h"
#include "events/output_archive.h"

namespace caisson::events {

store::Select<Event> SelectOf(const Filter& filter);

// Which events: those that match and whose ids lie between `after` and `before`.
struct PageQuery {
  Filter filter;
  std::vector<std::string> not_types = {};  // none of these
  int64_t after = 0, before = INT64_MAX;
  size_t limit = 100;
  bool newest = false;  // the last `limit` of them in place of the first
};

class Reader {
 public:
  // Both outlive it.
  Reader(store::Store& store, const Config& config)
      : store_(store), archive_(OutputArchive::DirectoryFor(config)) {}

  // Oldest first.
  Task<Result<std::vector<Event>>> Page(PageQuery query);
  // The same for much text: `visit` sees the events on a thread of the store, where it may take its
  // time. It must not refer to what ends with the caller, who may be canceled meanwhile.
  Task<Status> Visit(PageQuery query, std::function<void(const std::vector<Event>&)> visit);

 private:
  Result<std::vector<Event>> Read(store::Transaction& transaction, const PageQuery& query);

  store::Store& store_;
  OutputArchive archive_;
};

}  // namespace caisson::events

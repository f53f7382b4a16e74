// What the rules of this module are made with. All of it outlives them.
#pragma once

#include "base/config.h"
#include "events/log.h"
#include "flow/engine.h"
#include "store/store.h"

namespace caisson::work {

struct Platform {
  store::Store& store;
  events::Log& log;
  flow::Engine& flow;
  const Config& config;
};

// A part of a list.
struct Page {
  int64_t limit = 50;
  int64_t offset = 0;
};
template <class T>
struct Listed {
  std::vector<T> items;
  int64_t total = 0;  // of all pages
};

}  // namespace caisson::work

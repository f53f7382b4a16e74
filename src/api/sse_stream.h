// One answer of Server-Sent Events: its head, its pieces, its end.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>

#include "base/config.h"
#include "http/server.h"

namespace caisson::api {

// One event as text; `id` 0: it has none.
std::string Sse(std::string_view type, const boost::json::object& data, int64_t id = 0);

class SseStream {
 public:
  // Both outlive it. It is compressed if the client accepts gzip and `sse_compression` is on.
  SseStream(http::Exchange& exchange, const Config& config);
  ~SseStream();

  Task<Status> Start(std::string_view first);
  // The client can read all of it when this returns, compressed or not.
  Task<Status> Write(std::string_view events);
  Task<Status> Finish();

 private:
  class Gzip;
  http::Exchange& exchange_;
  std::unique_ptr<Gzip> gzip_;  // null: not compressed
};

}  // namespace caisson::api

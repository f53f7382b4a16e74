// Which pages of other origins may use /api/v1: those of the setting cors_origins.
#pragma once

#include <string>
#include <vector>

#include "http/message.h"

namespace caisson::api {

class Cors {
 public:
  // "https://a, https://b".
  explicit Cors(std::string_view origins);

  // The headers that every answer to this request has.
  http::Headers HeadersFor(const http::RequestHead& request) const;
  // The answer to OPTIONS. `methods`: "GET, POST".
  http::Response Preflight(const http::RequestHead& request, const std::string& methods) const;

 private:
  std::vector<std::string> origins_;
};

}  // namespace caisson::api

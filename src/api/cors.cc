#include "api/cors.h"

#include <algorithm>

#include "base/text.h"

namespace caisson::api {

Cors::Cors(std::string_view origins) {
  for (std::string_view origin : Split(origins, ','))
    if (origin = Trim(origin); !origin.empty()) origins_.emplace_back(origin);
}

http::Headers Cors::HeadersFor(const http::RequestHead& request) const {
  http::Headers headers{{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
  if (origins_.empty()) return headers;
  headers.Set("Vary", "Origin");
  std::string_view origin = request.headers.Value("Origin");
  // SECURITY: only those that were named, word for word: with credentials a page elsewhere acts as
  // its visitor.
  if (std::ranges::find(origins_, origin) == origins_.end()) return headers;
  headers.Set("Access-Control-Allow-Origin", origin);
  headers.Set("Access-Control-Allow-Credentials", "true");
  headers.Set("Access-Control-Expose-Headers",
              "Retry-After, X-Request-Id, Server-Timing, Idempotency-Replayed");
  return headers;
}

http::Response Cors::Preflight(const http::RequestHead& request, const std::string& methods) const {
  http::Response response = http::Response::Empty(204);
  response.headers = HeadersFor(request);
  response.headers.Set("Allow", methods);
  if (!response.headers.Has("Access-Control-Allow-Origin")) return response;
  response.headers.Set("Access-Control-Allow-Methods", methods);
  response.headers.Set("Access-Control-Allow-Headers",
                       "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-API-KEY, "
                       "X-CSRF-Token, X-Request-Id");
  response.headers.Set("Access-Control-Max-Age", "7200");
  return response;
}

}  // namespace caisson::api

#include "envd/cors.h"

namespace caisson::envd {
namespace {

constexpr char kMaxAge[] = "7200";  // seconds

// What scripts may read besides the standard headers.
constexpr char kExposed[] =
    "Content-Disposition, Content-Range, Content-Encoding, Grpc-Status, Grpc-Message, "
    "Grpc-Status-Details-Bin, Location, Cache-Control, X-Content-Type-Options";

void Allow(http::Headers& headers) {
  headers.Set("Access-Control-Allow-Origin", "*");
  headers.Set("Access-Control-Expose-Headers", kExposed);
  headers.Add("Vary", "Origin");
}

}  // namespace

bool IsPreflight(const http::RequestHead& request) {
  return request.method == "OPTIONS" && request.headers.Has("Origin") &&
         request.headers.Has("Access-Control-Request-Method");
}

http::Response PreflightAnswer(const http::RequestHead& request) {
  http::Response response = http::Response::Empty(204);
  response.headers.Set("Access-Control-Allow-Origin", "*");
  response.headers.Set("Access-Control-Allow-Methods",
                       request.headers.Value("Access-Control-Request-Method"));
  if (auto asked = request.headers.Get("Access-Control-Request-Headers"))
    response.headers.Set("Access-Control-Allow-Headers", *asked);
  response.headers.Set("Access-Control-Max-Age", kMaxAge);
  return response;
}

CorsExchange::CorsExchange(http::Exchange& inner) : inner_(inner) {
  head_ = inner.request();
  request_id_ = inner.request_id();
}

Task<Status> CorsExchange::Send(http::Response response) {
  Allow(response.headers);
  return inner_.Send(std::move(response));
}

Task<Status> CorsExchange::StartStream(http::ResponseHead head,
                                       std::optional<uint64_t> content_length,
                                       std::string_view first) {
  Allow(head.headers);
  return inner_.StartStream(std::move(head), content_length, first);
}

}  // namespace caisson::envd

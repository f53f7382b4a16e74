#include "e2b/answer.h"

#include <boost/json.hpp>

#include "base/text.h"

namespace caisson::e2b {
namespace {

// In seconds; long enough for a kill or a timeout to make room, short enough to wait for.
constexpr std::string_view kRetryAfter = "1";

constexpr std::string_view kAllowedHeaders =
    "Authorization, Content-Type, Idempotency-Key, X-API-KEY, X-Access-Token, E2b-Sandbox-Id, "
    "E2b-Sandbox-Port, e2b-traffic-access-token, browser, lang, lang_version, package_version, "
    "publisher, sdk_runtime, system, User-Agent";

}  // namespace

unsigned StatusOf(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return 400;
    case Code::kUnauthenticated:
      return 401;
    case Code::kPermissionDenied:
      return 403;
    case Code::kNotFound:
      return 404;
    case Code::kAlreadyExists:
    case Code::kFailedPrecondition:
    case Code::kAborted:
      return 409;
    case Code::kOutOfRange:
      return 413;
    case Code::kResourceExhausted:
      return 429;
    case Code::kUnimplemented:
      return 501;
    case Code::kUnavailable:
    case Code::kCanceled:
      return 503;
    case Code::kDeadlineExceeded:
      return 504;
    case Code::kUnknown:
    case Code::kInternal:
    case Code::kDataLoss:
      break;
  }
  return 500;
}

http::Response ErrorAnswer(unsigned status, std::string_view message, std::string_view error_code) {
  // Messages quote what the client sent, which may be any bytes.
  boost::json::object body{{"code", status}, {"message", ToUtf8(message)}};
  if (!error_code.empty()) body["error_code"] = error_code;
  http::Response response = http::Response::Json(status, body);
  if (status == 429 || status == 503) response.headers.Set("Retry-After", kRetryAfter);
  return response;
}

http::Response ErrorAnswer(const Error& error) {
  return ErrorAnswer(StatusOf(error.code()), error.message());
}

http::Response StartError(const Error& error) {
  switch (error.code()) {
    case Code::kUnavailable:
      return ErrorAnswer(503, error.message(), "sandbox_capacity_unavailable");
    case Code::kDeadlineExceeded:
      return ErrorAnswer(504, error.message(), "sandbox_placement_timeout");
    case Code::kInternal:
      return ErrorAnswer(500, error.message(), "sandbox_create_failed");
    default:
      return ErrorAnswer(error);
  }
}

void AddCors(http::ResponseHead& head) {
  head.headers.Set("Access-Control-Allow-Origin", "*");
  head.headers.Set("Access-Control-Expose-Headers",
                   "X-Next-Token, X-Total-Running, Retry-After, X-Request-Id");
}

http::Response Preflight(const http::RequestHead& request, std::string_view methods) {
  http::Response response = http::Response::Empty(204);
  AddCors(response);
  response.headers.Set("Access-Control-Allow-Methods", methods);
  // "*" would not cover Authorization, so what is asked for is what is allowed.
  std::string_view asked = request.headers.Value("Access-Control-Request-Headers");
  response.headers.Set("Access-Control-Allow-Headers", asked.empty() ? kAllowedHeaders : asked);
  response.headers.Set("Access-Control-Max-Age", "7200");
  return response;
}

}  // namespace caisson::e2b

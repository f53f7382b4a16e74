#include "api/refusal.h"

#include <boost/json.hpp>

#include "base/text.h"
#include "e2b/answer.h"

namespace caisson::api {
namespace {

bool IsRetryable(Code code) {
  return code == Code::kAborted || code == Code::kResourceExhausted || code == Code::kUnavailable ||
         code == Code::kCanceled || code == Code::kDeadlineExceeded;
}

}  // namespace

// A message "a_word: a sentence" brings its own word for programs.
Refusal RefusalOf(const Error& error) {
  Refusal refusal{e2b::StatusOf(error.code()), std::string(CodeName(error.code())), error.message(),
                  IsRetryable(error.code())};
  std::string_view message = error.message();
  size_t end = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  if (end == std::string_view::npos || !message.substr(end).starts_with(": ") ||
      message.substr(0, end).find('_') == std::string_view::npos)
    return refusal;
  refusal.code = message.substr(0, end);
  refusal.message = message.substr(end + 2);
  if (refusal.code == "command_refused") refusal.status = 422;
  if (refusal.code == "github_not_configured") refusal.status = 503;
  return refusal;
}

http::Response ErrorResponse(const Refusal& refusal, const std::string& debug_id) {
  // Messages quote what the client sent, which may be any bytes.
  boost::json::object error{{"code", refusal.code},
                            {"message", ToUtf8(refusal.message)},
                            {"debug_id", debug_id},
                            {"retryable", refusal.retryable}};
  auto response =
      http::Response::Json(refusal.status, boost::json::object{{"error", std::move(error)}});
  int64_t wait = refusal.retry_after_s;
  // Without it clients do not try again.
  if (wait == 0 && (refusal.status == 429 || refusal.status == 503)) wait = 1;
  if (wait > 0) response.headers.Set("Retry-After", fmt::to_string(wait));
  return response;
}

http::Response ErrorResponse(const Error& error, const std::string& debug_id) {
  return ErrorResponse(RefusalOf(error), debug_id);
}

http::Response NoSuchRoute(const http::RequestHead& request, const std::string& debug_id) {
  return ErrorResponse(
      Refusal{404, "not_found",
              fmt::format("there is no {} {} on this server", request.method, request.Path())},
      debug_id);
}

http::Response WrongMethod(const http::RequestHead& request, const std::string& allowed,
                           const std::string& debug_id) {
  auto response =
      ErrorResponse(Refusal{405, "method_not_allowed",
                            fmt::format("{} cannot be used on {}", request.method, request.Path())},
                    debug_id);
  response.headers.Set("Allow", allowed);
  return response;
}

}  // namespace caisson::api

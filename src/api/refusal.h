// Errors as /api/v1 tells them: {"error":{"code","message","debug_id","retryable"}}.
#pragma once

#include <string>

#include "base/error.h"
#include "http/message.h"

namespace caisson::api {

// Why a request is not done.
struct Refusal {
  unsigned status = 500;
  std::string code;     // a word for programs
  std::string message;  // a sentence for people
  bool retryable = false;
  int64_t retry_after_s = 0;  // 0 = not said, or a second where one is needed
};

template <class T>
using Checked = tl::expected<T, Refusal>;

Refusal RefusalOf(const Error& error);
template <class... Args>
tl::unexpected<Refusal> Refuse(unsigned status, std::string code,
                               fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected(
      Refusal{status, std::move(code), fmt::format(format, std::forward<Args>(args)...)});
}

// `debug_id`: the request's id.
http::Response ErrorResponse(const Refusal& refusal, const std::string& debug_id);
http::Response ErrorResponse(const Error& error, const std::string& debug_id);

// For requests under /api/v1 that no route takes.
http::Response NoSuchRoute(const http::RequestHead& request, const std::string& debug_id);
http::Response WrongMethod(const http::RequestHead& request, const std::string& allowed,
                           const std::string& debug_id);

}  // namespace caisson::api

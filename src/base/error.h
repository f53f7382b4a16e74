// Errors as values. Expected failures travel as Result<T>; we never throw. Exceptions of std and
// Boost are caught at the edges (HTTP handler, TaskGroup child, RunBlocking job, main).
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace caisson {

// The Connect/gRPC list, so that errors of envd map one to one and HTTP maps in one table.
enum class Code {
  kCanceled,
  kUnknown,
  kInvalidArgument,
  kDeadlineExceeded,
  kNotFound,
  kAlreadyExists,
  kPermissionDenied,
  kResourceExhausted,
  kFailedPrecondition,
  kAborted,
  kOutOfRange,
  kUnimplemented,
  kInternal,
  kUnavailable,
  kDataLoss,
  kUnauthenticated,
};

// Connect's name of the code, e.g. "not_found".
std::string_view CodeName(Code code);

class [[nodiscard]] Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const { return code_; }
  // A sentence safe to show to a client: no secrets, no host paths the client does not know.
  const std::string& message() const { return message_; }
  // The errno behind it, 0 if none.
  int sys_errno() const { return errno_; }
  Error& WithErrno(int e) {
    errno_ = e;
    return *this;
  }
  // Prepends what was being done; each layer adds context at most once.
  Error Context(std::string_view doing) &&;

 private:
  Code code_;
  std::string message_;
  int errno_ = 0;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

template <class... Args>
tl::unexpected<Error> Fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected(Error(code, fmt::format(format, std::forward<Args>(args)...)));
}

// An Error for the current errno: "<doing>: <strerror>", with a code that fits it.
Error ErrnoError(std::string doing, int error_number = errno);

template <class... Args>
tl::unexpected<Error> FailErrno(fmt::format_string<Args...> format, Args&&... args) {
  int e = errno;
  return tl::unexpected(ErrnoError(fmt::format(format, std::forward<Args>(args)...), e));
}

}  // namespace caisson

#define CAISSON_CONCAT_(a, b) a##b
#define CAISSON_CONCAT(a, b) CAISSON_CONCAT_(a, b)

// TRY(expr): returns the error of a Status or Result. TRY_ASSIGN(auto x, expr): unwraps a Result.
// The CO_ forms are for coroutines.
#define TRY(expr)                                                            \
  do {                                                                       \
    auto try_result_ = (expr);                                               \
    if (!try_result_) return tl::unexpected(std::move(try_result_).error()); \
  } while (0)
#define CO_TRY(expr)                                                            \
  do {                                                                          \
    auto try_result_ = (expr);                                                  \
    if (!try_result_) co_return tl::unexpected(std::move(try_result_).error()); \
  } while (0)
#define TRY_ASSIGN(lhs, expr) TRY_ASSIGN_(CAISSON_CONCAT(try_r_, __COUNTER__), return, lhs, expr)
#define CO_TRY_ASSIGN(lhs, expr) \
  TRY_ASSIGN_(CAISSON_CONCAT(try_r_, __COUNTER__), co_return, lhs, expr)
#define TRY_ASSIGN_(r, ret, lhs, expr)              \
  auto r = (expr);                                  \
  if (!r) ret tl::unexpected(std::move(r).error()); \
  lhs = std::move(*r)

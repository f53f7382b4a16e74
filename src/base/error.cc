#include "base/error.h"

#include <array>
#include <cstring>

namespace caisson {
namespace {

constexpr std::array<std::string_view, 16> kNames = {
    "canceled",       "unknown",           "invalid_argument",   "deadline_exceeded",   "not_found",
    "already_exists", "permission_denied", "resource_exhausted", "failed_precondition", "aborted",
    "out_of_range",   "unimplemented",     "internal",           "unavailable",         "data_loss",
    "unauthenticated"};

Code CodeOf(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ESRCH:
      return Code::kNotFound;
    case EEXIST:
      return Code::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermissionDenied;
    case EINVAL:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
      return Code::kInvalidArgument;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ENOMEM:
      return Code::kResourceExhausted;
    case ELOOP:
    case ENOTEMPTY:
      return Code::kFailedPrecondition;
    case ETIMEDOUT:
      return Code::kDeadlineExceeded;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
      return Code::kUnavailable;
    case ENOSYS:
    case EOPNOTSUPP:
      return Code::kUnimplemented;
    default:
      return Code::kInternal;
  }
}

}  // namespace

std::string_view CodeName(Code code) { return kNames[static_cast<size_t>(code)]; }

Error Error::Context(std::string_view doing) && {
  message_ = fmt::format("{}: {}", doing, message_);
  return std::move(*this);
}

Error ErrnoError(std::string doing, int error_number) {
  Error error(CodeOf(error_number), fmt::format("{}: {}", doing, strerror(error_number)));
  error.WithErrno(error_number);
  return error;
}

}  // namespace caisson

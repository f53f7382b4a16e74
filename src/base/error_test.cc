#include "base/error.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

Result<int> Half(int x) {
  if (x % 2) return Fail(Code::kInvalidArgument, "{} is odd", x);
  return x / 2;
}
Result<int> Quarter(int x) {
  TRY_ASSIGN(int half, Half(x));
  TRY(Half(half));
  return half / 2;
}

TEST(Error, TryReturnsTheFirstError) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(7).error().message(), "7 is odd");
  EXPECT_EQ(Quarter(6).error().message(), "3 is odd");
}

TEST(Error, ErrnoKeepsNumberAndMapsToCode) {
  errno = ENOENT;
  Status status = FailErrno("opening {}", "x");
  EXPECT_EQ(status.error().sys_errno(), ENOENT);
  EXPECT_EQ(status.error().code(), Code::kNotFound);
  EXPECT_EQ(status.error().message(), "opening x: No such file or directory");
}

TEST(Error, ContextIsPrepended) {
  EXPECT_EQ(Half(1).error().Context("halving").message(), "halving: 1 is odd");
}

TEST(Error, CodeNamesAreConnectNames) {
  EXPECT_EQ(CodeName(Code::kCanceled), "canceled");
  EXPECT_EQ(CodeName(Code::kUnauthenticated), "unauthenticated");
}

}  // namespace
}  // namespace caisson

#include "sandbox/secrets.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/testing.h"

namespace caisson::sandbox {
namespace {

unsigned ModeOf(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

TEST(Secrets, AreMadeOnceAndGiveDifferentTokens) {
  testing::TempDir dir;
  std::string secret = LoadSecret(dir.path()).value();
  EXPECT_EQ(secret.size(), 64u);
  EXPECT_EQ(ModeOf(dir / "secret"), 0600u);
  EXPECT_EQ(LoadSecret(dir.path()).value(), secret);

  std::string token = AccessToken(secret, "i1");
  EXPECT_EQ(token.size(), 64u);
  EXPECT_EQ(AccessToken(secret, "i1"), token);
  EXPECT_NE(AccessToken(secret, "i2"), token);
  EXPECT_NE(TrafficToken(secret, "i1"), token);
  EXPECT_NE(InsideToken(secret, "i1"), token);
  EXPECT_NE(InsideToken(secret, "i1"), TrafficToken(secret, "i1"));
  EXPECT_NE(AccessToken("other", "i1"), token);
}

TEST(Secrets, ADamagedFileIsNotUsed) {
  testing::TempDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir / "secret", "abc\n", 0600));
  EXPECT_EQ(LoadSecret(dir.path()).error().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace caisson::sandbox

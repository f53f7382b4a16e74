#include "account/key_ring.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/encoding.h"
#include "base/testing.h"
#include "base/text.h"

namespace caisson::account {
namespace {

unsigned ModeOf(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

std::string UserBy(const KeyRing& ring, std::string_view key) {
  auto holder = ring.Check(key);
  return holder ? holder->user_id : "";
}

TEST(KeyRing, MakesTheFirstKeyOnce) {
  testing::TempDir dir;
  ASSERT_TRUE(KeyRing::Open(dir.path(), ""));
  std::string key(Trim(ReadFile(dir / "api-key").value()));
  EXPECT_EQ(ModeOf(dir / "api-key"), 0600u);
  ASSERT_EQ(key.size(), 44u);
  EXPECT_TRUE(key.starts_with("e2b_"));
  EXPECT_EQ(key.find_first_not_of("0123456789abcdef", 4), std::string::npos);

  auto again = KeyRing::Open(dir.path(), "").value();
  EXPECT_EQ(UserBy(again, key), "admin");
  for (std::string wrong :
       {std::string(), key + "0", key.substr(0, 43), "e2b_" + std::string(40, '0')})
    EXPECT_EQ(UserBy(again, wrong), "") << wrong;
}

TEST(KeyRing, AConfiguredKeyReplacesTheFile) {
  testing::TempDir dir;
  std::string configured = "e2b_" + std::string(40, 'a');
  auto ring = KeyRing::Open(dir.path(), configured).value();
  EXPECT_EQ(UserBy(ring, configured), "admin");
  EXPECT_FALSE(std::filesystem::exists(dir / "api-key"));
  EXPECT_FALSE(KeyRing::Open(dir.path(), "short"));
}

TEST(KeyRing, TakesTheKeysOfTheStoreThatAreNotRevoked) {
  testing::TempDir dir;
  asio::io_context io;
  auto store = store::OpenStore("sqlite:///" + (dir / "a.db"), io.get_executor()).value();
  auto hash = [](std::string_view key) { return HexEncode(Sha256(key)); };
  ASSERT_TRUE(testing::Await(io, store->AddApiKey({"k1", "one", hash("key one"), "", Now(), {}})));
  ASSERT_TRUE(
      testing::Await(io, store->AddApiKey({"k2", "two", hash("key two"), "", Now(), Now()})));
  auto ring = KeyRing::Open(dir.path(), "").value();
  EXPECT_EQ(UserBy(ring, "key one"), "");
  ASSERT_TRUE(testing::Await(io, ring.Load(*store)));
  EXPECT_EQ(UserBy(ring, "key one"), "k1");
  EXPECT_EQ(UserBy(ring, "key two"), "");
}

}  // namespace
}  // namespace caisson::account

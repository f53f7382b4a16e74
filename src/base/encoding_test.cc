#include "base/encoding.h"

#include <gtest/gtest.h>

#include "base/id.h"

namespace caisson {
namespace {

TEST(Base64, EncodesAndDecodesBothAlphabets) {
  std::string bytes("\xfb\xff\x00z", 4);
  EXPECT_EQ(Base64Encode(bytes), "+/8Aeg==");
  EXPECT_EQ(Base64UrlEncode(bytes), "-_8Aeg");
  for (const char* text : {"+/8Aeg==", "+/8Aeg", "-_8Aeg", "-_8Aeg=="})
    EXPECT_EQ(Base64Decode(text), bytes);
  EXPECT_FALSE(Base64Decode("a"));
  EXPECT_FALSE(Base64Decode("a*bc"));
}

TEST(Percent, DecodesOnceAndRefusesBrokenEscapes) {
  EXPECT_EQ(PercentDecode("a%2520b+c"), "a%20b+c");
  EXPECT_EQ(PercentDecode("a+b%2B", true), "a b+");
  EXPECT_FALSE(PercentDecode("%2"));
  EXPECT_FALSE(PercentDecode("%zz"));
  EXPECT_EQ(PercentEncode("a b/ü"), "a%20b%2F%C3%BC");
}

TEST(Hash, KnownVectors) {
  EXPECT_EQ(HexEncode(Sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256After after("a");
  EXPECT_EQ(after.Of("bc"), Sha256("abc"));
  EXPECT_EQ(after.Of("bc"), Sha256("abc")) << "once only";
  // RFC 4231, test case 2.
  EXPECT_EQ(HexEncode(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Id, HasItsShape) {
  std::string id = RandomId("i", 20);
  EXPECT_EQ(id.size(), 21u);
  EXPECT_EQ(id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), std::string::npos);
  EXPECT_NE(id, RandomId("i", 20));
  std::string uuid = RandomUuid();
  EXPECT_EQ(uuid.size(), 36u);
  EXPECT_EQ(uuid[14], '4');
}

TEST(ConstantTimeEqual, Compares) {
  EXPECT_TRUE(ConstantTimeEqual("secret", "secret"));
  EXPECT_FALSE(ConstantTimeEqual("secret", "secreT"));
  EXPECT_FALSE(ConstantTimeEqual("secret", "secret1"));
}

}  // namespace
}  // namespace caisson

#include "engine/egress.h"

#include <gtest/gtest.h>

namespace caisson::engine {
namespace {

TEST(ParseBlock, TellsAddressesFromText) {
  for (const char* good :
       {"1.2.3.4", "10.0.0.0/8", "0.0.0.0/0", "1.2.3.4/32", "::1", "2001:db8::/32"})
    EXPECT_TRUE(ParseBlock(good)) << good;
  for (const char* bad : {"", "1.2.3", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/-1", "1.2.3.4/8x", "a.b",
                          "::1/129", "01.2.3.4/8 ", "/8"})
    EXPECT_FALSE(ParseBlock(bad)) << bad;
}

TEST(ParseBlock, BlocksContainBlocks) {
  auto contains = [](const char* a, const char* b) {
    return ParseBlock(a)->Contains(*ParseBlock(b));
  };
  EXPECT_TRUE(contains("10.0.0.0/8", "10.255.1.2"));
  EXPECT_TRUE(contains("10.1.2.3/8", "10.9.0.0/16"));  // bits after the prefix do not count
  EXPECT_TRUE(contains("172.16.0.0/12", "172.31.255.255"));
  EXPECT_FALSE(contains("172.16.0.0/12", "172.32.0.0"));
  EXPECT_FALSE(contains("10.0.0.0/8", "10.0.0.0/7"));
  EXPECT_FALSE(contains("0.0.0.0/0", "::1"));
  EXPECT_TRUE(contains("0.0.0.0/0", "8.8.8.8"));
}

TEST(IsHostPattern, TakesNamesAndOneStar) {
  for (const char* good :
       {"example.com", "*.example.com", "a-b.c_d.org", "xn--bcher-kva.example", "a.com."})
    EXPECT_TRUE(IsHostPattern(good)) << good;
  for (const char* bad : {"", "localhost", "*", "a.*.com", "-a.com", "a..b", "1.2.3.4", "a.com:80",
                          "http://a.com", "a b.com"})
    EXPECT_FALSE(IsHostPattern(bad)) << bad;
}

TEST(MatchesHost, TakesNamesHoweverTheyAreWritten) {
  EXPECT_TRUE(MatchesHost("example.com", "EXAMPLE.com."));
  EXPECT_TRUE(MatchesHost("Example.COM.", "example.com"));
  EXPECT_FALSE(MatchesHost("example.com", "a.example.com"));
  EXPECT_FALSE(MatchesHost("example.com", "notexample.com"));
  EXPECT_TRUE(MatchesHost("*.example.com", "a.b.example.com."));
  EXPECT_FALSE(MatchesHost("*.example.com", "example.com"));
  EXPECT_FALSE(MatchesHost("*.example.com", ".example.com"));
  EXPECT_FALSE(MatchesHost("*.example.com", "aexample.com"));
  EXPECT_FALSE(MatchesHost("*.example.com", "example.com.evil.org"));
  EXPECT_TRUE(MatchesHost("xn--bcher-kva.example", "XN--BCHER-KVA.example"));
  EXPECT_FALSE(MatchesHost("example.com", "example\\046com"));  // a label with a dot inside
}

TEST(IsInternet, KnowsWhatIsNot) {
  auto is = [](const char* text) { return IsInternet(ParseCidr(text + std::string("/32"))->base); };
  for (const char* address :
       {"169.254.169.254", "100.100.100.200", "10.0.0.1", "172.31.9.9", "192.168.1.1", "127.0.0.1",
        "0.0.0.0", "198.18.0.1", "198.19.255.255", "224.0.0.1", "255.255.255.255", "192.0.0.192"})
    EXPECT_FALSE(is(address)) << address;
  for (const char* address : {"1.1.1.1", "172.32.0.1", "198.20.0.1", "223.255.255.255", "9.9.9.9"})
    EXPECT_TRUE(is(address)) << address;
}

TEST(CheckEgress, RefusesRulesThatMakeNoSense) {
  EXPECT_TRUE(CheckEgress({}));
  EXPECT_TRUE(CheckEgress({.allow = {"1.1.1.1"}, .deny = {"10.0.0.0/8", "::/0"}}));
  EXPECT_TRUE(CheckEgress({.allow = {"*.a.example"}, .deny = {"0.0.0.0/0"}}));
  for (const Egress& bad : {Egress{.deny = {"a.example"}}, Egress{.allow = {"a.example"}},
                            Egress{.allow = {"localhost"}, .deny = {"0.0.0.0/0"}},
                            Egress{.allow = {"a.example"}, .deny = {"::/0"}},
                            Egress{.deny = {std::string("1.2.3.4\0x", 9)}},
                            Egress{.deny = std::vector<std::string>(10'000, "1.2.3.4")}})
    EXPECT_EQ(CheckEgress(bad).error().code(), Code::kInvalidArgument);
}

std::string Text(const EgressPolicy& policy) {
  std::string text;
  for (Range range : policy.denied())
    text += FormatIpv4(range.first) + "-" + FormatIpv4(range.last) + " ";
  return text;
}

TEST(EgressPolicy, SubtractsWhatIsAllowedFromWhatIsDenied) {
  auto denied = [](Egress egress) { return Text(EgressPolicy(egress)); };
  EXPECT_EQ(denied({}), "");
  EXPECT_EQ(denied({.allow = {"1.1.1.1"}}), "");
  EXPECT_EQ(denied({.deny = {"0.0.0.0/0"}}), "0.0.0.0-255.255.255.255 ");
  EXPECT_EQ(denied({.allow = {"0.0.0.0/0"}, .deny = {"0.0.0.0/0"}}), "");
  EXPECT_EQ(denied({.allow = {"1.1.1.1"}, .deny = {"1.1.1.0/24"}}),
            "1.1.1.0-1.1.1.0 1.1.1.2-1.1.1.255 ");
  // Overlaps and neighbours are one.
  EXPECT_EQ(denied({.deny = {"1.1.1.128/25", "1.1.1.0/25", "1.1.1.7"}}), "1.1.1.0-1.1.1.255 ");
  EXPECT_EQ(denied({.allow = {"0.0.0.0/1", "255.255.255.255"}, .deny = {"0.0.0.0/0"}}),
            "128.0.0.0-255.255.255.254 ");
  EXPECT_EQ(denied({.deny = {"::/0", "2001:db8::/32"}}), "");  // none of it leaves anyway
  EgressPolicy policy({.allow = {"8.8.8.0/24"}, .deny = {"8.0.0.0/8"}});
  auto denies = [&](const char* text) { return policy.Denies(ParseCidr(text)->base); };
  EXPECT_TRUE(denies("8.0.0.0/32"));
  EXPECT_TRUE(denies("8.255.255.255/32"));
  EXPECT_TRUE(denies("8.8.7.255/32"));
  EXPECT_FALSE(denies("8.8.8.0/32"));
  EXPECT_FALSE(denies("9.0.0.0/32"));
  EXPECT_FALSE(denies("0.0.0.0/32"));
}

TEST(EgressPolicy, FiltersNamesOnlyWhenEverythingElseIsDenied) {
  EgressPolicy open({.deny = {"8.8.8.8"}});
  EXPECT_FALSE(open.filters_names());
  EXPECT_TRUE(open.AllowsName("anything.example"));
  EgressPolicy closed({.deny = {"0.0.0.0/0"}});
  EXPECT_TRUE(closed.filters_names());
  EXPECT_FALSE(closed.AllowsName("anything.example"));
  EgressPolicy listed({.allow = {"*.a.example", "9.9.9.9"}, .deny = {"0.0.0.0/0"}});
  EXPECT_TRUE(listed.AllowsName("X.a.example."));
  EXPECT_FALSE(listed.AllowsName("b.example"));
  EgressPolicy reopened({.allow = {"0.0.0.0/0"}, .deny = {"0.0.0.0/0"}});
  EXPECT_FALSE(reopened.filters_names());
  EXPECT_TRUE(reopened.open());
}

}  // namespace
}  // namespace caisson::engine

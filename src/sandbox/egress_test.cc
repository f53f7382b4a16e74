#include "sandbox/egress.h"

#include <gtest/gtest.h>

namespace caisson::sandbox {
namespace {

TEST(ParseCidr, TellsAddressesFromText) {
  for (const char* good :
       {"1.2.3.4", "10.0.0.0/8", "0.0.0.0/0", "1.2.3.4/32", "::1", "2001:db8::/32"})
    EXPECT_TRUE(ParseCidr(good)) << good;
  for (const char* bad : {"", "1.2.3", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/-1", "1.2.3.4/8x", "a.b",
                          "::1/129", "01.2.3.4/8 ", "/8"})
    EXPECT_FALSE(ParseCidr(bad)) << bad;
}

TEST(ParseCidr, BlocksContainBlocks) {
  auto contains = [](const char* a, const char* b) {
    return ParseCidr(a)->Contains(*ParseCidr(b));
  };
  EXPECT_TRUE(contains("10.0.0.0/8", "10.255.1.2"));
  EXPECT_TRUE(contains("10.1.2.3/8", "10.9.0.0/16"));  // bits after the prefix do not count
  EXPECT_TRUE(contains("172.16.0.0/12", "172.31.255.255"));
  EXPECT_FALSE(contains("172.16.0.0/12", "172.32.0.0"));
  EXPECT_FALSE(contains("10.0.0.0/8", "10.0.0.0/7"));
  EXPECT_FALSE(contains("0.0.0.0/0", "::1"));
  EXPECT_TRUE(contains("0.0.0.0/0", "8.8.8.8"));
}

TEST(IsDomainPattern, TakesNamesAndOneStar) {
  for (const char* good : {"example.com", "*.example.com", "a-b.c_d.org", "xn--bcher-kva.example"})
    EXPECT_TRUE(IsDomainPattern(good)) << good;
  for (const char* bad : {"", "localhost", "*", "a.*.com", "-a.com", "a..b", "1.2.3.4", "a.com:80",
                          "http://a.com", "a b.com"})
    EXPECT_FALSE(IsDomainPattern(bad)) << bad;
}

TEST(DecideEgress, AnswersOnlyWhatIsEnforced) {
  struct Case {
    EgressRules rules;
    std::optional<bool> internet;
    Code code = Code::kInternal;
  };
  const std::string all = "0.0.0.0/0";
  for (const auto& [rules, internet, code] : {
           Case{{}, true},
           {{.internet = false}, false},
           {{.deny = {all}}, false},
           {{.deny = {all, "1.1.1.1"}}, false},
           {{.allow = {all}, .deny = {all}}, true},
           {{.deny = {"10.0.0.0/8", "192.168.1.1", "::/0"}}, true},
           {{.allow = {"1.1.1.1"}, .deny = {"10.0.0.0/8"}}, true},
           {{.allow = {"1.1.1.1"}}, true},
           {{.allow = {"10.0.0.1"}, .deny = {all}}, false},  // private is never reachable anyway
           {{.allow = {"1.1.1.1"}, .deny = {all}}, {}, Code::kUnimplemented},
           {{.internet = false, .allow = {"1.1.1.1"}}, {}, Code::kUnimplemented},
           {{.allow = {"example.com"}, .deny = {all}}, {}, Code::kUnimplemented},
           {{.deny = {"8.8.8.8"}}, {}, Code::kUnimplemented},
           {{.deny = {"10.0.0.0/7"}}, {}, Code::kUnimplemented},
           {{.deny = {"0.0.0.0/1", "128.0.0.0/1"}}, {}, Code::kUnimplemented},
           {{.deny = {"example.com"}}, {}, Code::kInvalidArgument},
           {{.allow = {"example.com"}}, {}, Code::kInvalidArgument},
           {{.allow = {"not a host"}, .deny = {all}}, {}, Code::kInvalidArgument},
       }) {
    auto decided = DecideEgress(rules);
    std::string shown = fmt::format("internet {} allow [{}] deny [{}]", rules.internet,
                                    fmt::join(rules.allow, " "), fmt::join(rules.deny, " "));
    if (internet) {
      ASSERT_TRUE(decided) << shown << ": " << decided.error().message();
      EXPECT_EQ(*decided, *internet) << shown;
    } else {
      ASSERT_FALSE(decided) << shown;
      EXPECT_EQ(decided.error().code(), code) << shown;
    }
  }
}

}  // namespace
}  // namespace caisson::sandbox

#include "engine/nft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/network.h"

namespace caisson::engine {
namespace {

using testing::HasSubstr;
using testing::Not;

NftRules Example() {
  return {.table = NftTableName("1a2b3c4d"),
          .interface_prefix = InterfacePrefix("1a2b3c4d"),
          .network = *ParseCidr("198.18.0.0/15"),
          .dns = "10.1.2.3",
          .max_connections = 77};
}

TEST(NftTest, ReplacesOnlyItsOwnTable) {
  std::string text = RenderNftRules(Example());
  EXPECT_TRUE(
      text.starts_with("add table inet caisson_1a2b3c4d\n"
                       "delete table inet caisson_1a2b3c4d\n"
                       "table inet caisson_1a2b3c4d {\n"));
  EXPECT_THAT(text, Not(HasSubstr("flush")));
  // Every rule that lets through or refuses speaks of our interfaces, directly or by the jump that
  // leads to it; the chains' own policy leaves strangers' packets alone.
  EXPECT_THAT(text, Not(HasSubstr("policy drop")));
}

TEST(NftTest, NamesEveryRangeThatIsNotTheInternet) {
  std::string text = RenderNftRules(Example());
  for (const char* range : {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16",
                            "100.64.0.0/10", "127.0.0.0/8", "198.18.0.0/15", "224.0.0.0/3"})
    EXPECT_THAT(text, HasSubstr(range));
}

TEST(NftTest, OwnNetworkIsNeverTheInternet) {
  NftRules rules = Example();
  rules.network = *ParseCidr("203.0.113.0/24");
  std::string text = RenderNftRules(rules);
  EXPECT_THAT(text, HasSubstr("224.0.0.0/3, 203.0.113.0/24 }"));
  EXPECT_THAT(text, HasSubstr("ip daddr 198.18.0.1 udp dport 53 dnat ip to 10.1.2.3"));
  EXPECT_THAT(text, HasSubstr("ip saddr 203.0.113.0/24 oifname != \"cs1a2b-*\" masquerade"));
}

TEST(NftTest, RedirectedDnsIsAcceptedBeforePrivateRangesAreRefused) {
  std::string text = RenderNftRules(Example());
  size_t chain = text.find("chain from_sandbox");
  size_t dns = text.find("ct status dnat ct original ip daddr 198.18.0.1 accept", chain);
  size_t refuse = text.find("ip daddr @not_internet", chain);
  ASSERT_NE(chain, std::string::npos);
  ASSERT_NE(dns, std::string::npos);
  EXPECT_LT(dns, refuse);
  EXPECT_THAT(text, HasSubstr("ct count over 77"));
}

TEST(NftTest, WithoutResolverNothingIsRedirected) {
  NftRules rules = Example();
  rules.dns = "";
  EXPECT_THAT(RenderNftRules(rules), Not(HasSubstr("dnat ip to")));
}

TEST(NftTest, RemovalSucceedsWhetherOrNotTheTableIsThere) {
  EXPECT_EQ(RenderNftRemoval("caisson_x"),
            "add table inet caisson_x\ndelete table inet caisson_x\n");
}

TEST(FindResolverTest, SkipsLoopbackAndIpv6) {
  char path[] = "/tmp/caisson-resolv-XXXXXX";
  UniqueFd fd(mkstemp(path));
  std::string text = "# nameserver 9.9.9.9\nnameserver ::1\nnameserver 127.0.0.53\n";
  ASSERT_EQ(write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  EXPECT_EQ(FindResolver({path}), "");
  ASSERT_GT(write(fd.get(), "nameserver\t10.0.0.2 \n", 21), 0);
  EXPECT_EQ(FindResolver({"/nonexistent", path}), "10.0.0.2");
  unlink(path);
}

}  // namespace
}  // namespace caisson::engine

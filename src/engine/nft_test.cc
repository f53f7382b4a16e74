#include "engine/nft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/egress.h"
#include "engine/network.h"
#include "engine/resolver.h"

namespace caisson::engine {
namespace {

using testing::HasSubstr;
using testing::Not;

NftRules Example() {
  return {.table = NftTableName("1a2b3c4d"),
          .interface_prefix = InterfacePrefix("1a2b3c4d"),
          .network = *ParseCidr("198.18.0.0/15"),
          .max_connections = 77,
          .log_group = LogGroup("1a2b3c4d")};
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

// What clouds document as addresses at which a machine learns about itself, or gets its keys.
TEST(NftTest, NoCloudTellsASandboxAnything) {
  for (const char* address : {
           "169.254.169.254",  // AWS, Azure, Google, Oracle, DigitalOcean, Hetzner, OpenStack
           "169.254.169.253",  // AWS: names
           "169.254.169.123",  // AWS: time
           "169.254.170.2",    // AWS: keys of containers
           "169.254.170.23",   // AWS: keys of pods
           "168.63.129.16",    // Azure: the machine's agent
           "100.100.100.200",  // Alibaba
           "192.0.0.192",      // Oracle, before
           "169.254.0.23",     // Tencent
           "169.254.42.42",    // Scaleway
       })
    EXPECT_FALSE(IsInternet(ParseCidr(address + std::string("/32"))->base)) << address;
}

TEST(NftTest, WhatTheOperatorDeniesIsNeverTheInternet) {
  NftRules rules = Example();
  rules.never = *ParseCidrs("203.0.113.7, 198.51.100.0/24");
  EXPECT_THAT(RenderNftRules(rules),
              HasSubstr("224.0.0.0/3, 203.0.113.7/32, 198.51.100.0/24, 198.18.0.0/15 }"));
  EXPECT_TRUE(ParseCidrs(" ")->empty());
  for (const char* bad : {"1.2.3.4,", "x", "1.2.3.4/33", "::1", "1.2.3.4;5.6.7.8"})
    EXPECT_EQ(ParseCidrs(bad).error().code(), Code::kInvalidArgument) << bad;
}

TEST(NftTest, OwnNetworkIsNeverTheInternet) {
  NftRules rules = Example();
  rules.network = *ParseCidr("203.0.113.0/24");
  std::string text = RenderNftRules(rules);
  EXPECT_THAT(text, HasSubstr("224.0.0.0/3, 203.0.113.0/24 }"));
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

TEST(NftTest, LeadsDnsToOneOfTwoServices) {
  std::string text = RenderRedirections(Example(), {.resolver = 0x0a010203});
  for (const char* protocol : {"udp", "tcp"}) {
    // The filtered one first: the other rule would take every sandbox.
    size_t filtered = text.find(fmt::format(
        "ip daddr 198.18.0.1 ip saddr @named {} dport 53 dnat ip to 10.1.2.3:5301", protocol));
    size_t open = text.find(
        fmt::format("ip daddr 198.18.0.1 {} dport 53 dnat ip to 10.1.2.3:5300", protocol));
    ASSERT_NE(filtered, std::string::npos) << text;
    ASSERT_NE(open, std::string::npos) << text;
    EXPECT_LT(filtered, open);
  }
  EXPECT_THAT(RenderNftRules(Example()), Not(HasSubstr("dnat ip to")));
}

TEST(NftTest, WithAProxyNothingGoesStraightOut) {
  std::string text = RenderRedirections(Example(), {.resolver = 1, .relay = 0x0a010203});
  EXPECT_THAT(text, HasSubstr("add rule inet caisson_1a2b3c4d out goto refuse"));
  size_t host = text.find("fib daddr type local return"), denied = text.find("@denied return");
  size_t led = text.rfind("meta l4proto tcp dnat ip to 10.1.2.3:5302");
  ASSERT_NE(host, std::string::npos);
  ASSERT_NE(denied, std::string::npos);
  EXPECT_LT(host, led);
  EXPECT_LT(denied, led);
  EXPECT_TRUE(text.ends_with("input iifname \"cs1a2b-*\" goto refuse\n"));
}

TEST(NftTest, RulesOfLivingSandboxesAreThereFromTheBeginning) {
  NftRules rules = Example();
  rules.residents = {{0xc6120003, {.allow = {"1.1.1.1"}, .deny = {"0.0.0.0/0"}}},
                     {0xc6120005, {.deny = {"9.9.9.0/24"}}}};
  std::string text = RenderNftRules(rules);
  EXPECT_THAT(text, HasSubstr("elements = { 198.18.0.3 . 0.0.0.0-1.1.1.0, 198.18.0.3 . "
                              "1.1.1.2-255.255.255.255, 198.18.0.5 . 9.9.9.0-9.9.9.255,  }"));
  EXPECT_THAT(text, HasSubstr("elements = { 198.18.0.3,  }"));
  // Whatever connections they have must be found when they end.
  EXPECT_THAT(text, HasSubstr("elements = { 198.18.0.3, 198.18.0.5,  }"));
}

TEST(NftTest, NothingIsAdmittedThatIsNotTheInternet) {
  std::string text = RenderNftRules(Example());
  size_t chain = text.find("chain from_sandbox");
  EXPECT_LT(text.find("ip daddr @not_internet goto refuse", chain),
            text.find("@admitted goto out", chain));
  EXPECT_LT(text.find("@admitted goto out", chain), text.find("@denied goto refuse", chain));
}

TEST(NftTest, RemovalSucceedsWhetherOrNotTheTableIsThere) {
  EXPECT_EQ(RenderNftRemoval("caisson_x"),
            "add table inet caisson_x\ndelete table inet caisson_x\n");
}

TEST(FindNameserversTest, TakesWhatTheHostUses) {
  char path[] = "/tmp/caisson-resolv-XXXXXX";
  UniqueFd fd(mkstemp(path));
  std::string text =
      "# nameserver 9.9.9.9\nnameserver ::1\nnameserver\t127.0.0.53 \nnameserver nope\n";
  ASSERT_EQ(write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  auto found = FindNameservers("", path);
  unlink(path);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].address.ss_family, AF_INET6);
  EXPECT_EQ((*found)[1].address.ss_family, AF_INET);
  EXPECT_EQ(FindNameservers("10.0.0.1, [::1]:5353,10.0.0.2:54", path)->size(), 3u);
  EXPECT_TRUE(FindNameservers("", "/nonexistent")->empty());
  for (const char* bad : {"nope", "1.2.3.4:0", "1.2.3.4:x", "1.2.3.4,", "[::1", "1.2.3.4:70000"})
    EXPECT_EQ(FindNameservers(bad, path).error().code(), Code::kInvalidArgument) << bad;
}

}  // namespace
}  // namespace caisson::engine

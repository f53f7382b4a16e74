// The network of sandboxes, for real; see network_fixture.h.
#include "engine/network.h"

#include <gmock/gmock.h>

#include "engine/firewall.h"
#include "engine/network_fixture.h"

namespace caisson::engine {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(NetworkTest, ReachesTheInternetMasqueraded) {
  Sandbox sandbox = Make();
  EXPECT_EQ(root_.mtu, 1400u);
  EXPECT_TRUE(root_.forwarding_was_off);
  EXPECT_EQ(AskFrom(sandbox.fd(), SOCK_STREAM, kPublic, kPort), fmt::format("tcp {}", kHost));
  EXPECT_EQ(AskFrom(sandbox.fd(), SOCK_DGRAM, kPublic, kPort), fmt::format("udp {}", kHost));
  std::string inside = InChild(sandbox.fd(), [] {
    return *ReadFile("/proc/net/route") + *ReadFile("/proc/net/if_inet6") +
           std::to_string(Ask(SOCK_STREAM, "127.0.0.1", 1) == strerror(ECONNREFUSED));
  });
  EXPECT_THAT(inside, HasSubstr("eth0\t00000000"));
  EXPECT_THAT(inside, Not(HasSubstr("fe80")));
  EXPECT_TRUE(inside.ends_with("1")) << "the loopback is not up";
}

TEST_F(NetworkTest, RefusesPrivateAndReservedRanges) {
  Sandbox sandbox = Make();
  for (const char* address : {kResolver, "192.168.7.7", "172.16.3.4", "169.254.169.254",
                              "100.64.1.1", "198.19.200.200", "192.0.0.8"}) {
    // The host itself does reach it: what refuses is the policy.
    EXPECT_EQ(Ask(SOCK_STREAM, address, kPort), fmt::format("tcp {}", kHost)) << address;
    EXPECT_EQ(AskFrom(sandbox.fd(), SOCK_STREAM, address, kPort), strerror(ECONNREFUSED))
        << address;
    int before = seen_->load();
    // The kernel sends one address only so many refusals per second.
    EXPECT_THAT(AskFrom(sandbox.fd(), SOCK_DGRAM, address, kPort, "", kSilence),
                testing::AnyOf(strerror(EHOSTUNREACH), "timeout"))
        << address;
    EXPECT_EQ(seen_->load(), before) << address;
  }
  // The resolver's own address stays private: only the redirected one leads to it.
  EXPECT_EQ(AskFrom(sandbox.fd(), SOCK_STREAM, kResolver, 53), strerror(ECONNREFUSED));
}

TEST_F(NetworkTest, RefusesTheHost) {
  Sandbox sandbox = Make();
  pid_t server = fork();
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Serve(kPort, seen_ + 2);
  }
  servers_.push_back(server);
  WaitForServer("127.0.0.1", kPort);
  EXPECT_EQ(Ask(SOCK_STREAM, kHost, kPort), fmt::format("tcp {}", kHost));
  for (const std::string& address : {std::string(kHost), FormatIpv4(sandbox.slot.host_address())}) {
    EXPECT_EQ(AskFrom(sandbox.fd(), SOCK_STREAM, address, kPort), strerror(ECONNREFUSED));
    EXPECT_EQ(AskFrom(sandbox.fd(), SOCK_DGRAM, address, kPort), strerror(EHOSTUNREACH));
  }
  EXPECT_EQ(seen_[2].load(), 0);
}

TEST_F(NetworkTest, RefusesPortsOthersPublishOnTheHost) {
  // As a container runtime does: a port of the host leads to a private address.
  ASSERT_TRUE(
      RunNft(fmt::format("table ip published {{\n chain p {{\n type nat hook prerouting "
                         "priority -100; policy accept;\n ip daddr {} tcp dport 9090 dnat "
                         "to {}:{}\n }}\n}}\n",
                         kHost, kResolver, kPort)));
  Sandbox sandbox = Make();
  EXPECT_EQ(AskFrom(sandbox.fd(), SOCK_STREAM, kHost, 9090), strerror(ECONNREFUSED));
}

TEST_F(NetworkTest, RefusesOtherSandboxes) {
  Sandbox a = Make("a"), b = Make("b");
  servers_.push_back(b.space->Start([this] { Serve(kPort, seen_ + 2); }));
  std::string address = FormatIpv4(b.slot.sandbox_address());
  auto deadline = Clock::now() + kPatience;
  while (AskFrom(b.fd(), SOCK_STREAM, "127.0.0.1", kPort) != "tcp 127.0.0.1")
    ASSERT_LT(Clock::now(), deadline);
  EXPECT_EQ(AskFrom(a.fd(), SOCK_STREAM, address, kPort), strerror(ECONNREFUSED));
  EXPECT_EQ(AskFrom(a.fd(), SOCK_DGRAM, address, kPort), strerror(EHOSTUNREACH));
  EXPECT_EQ(seen_[2].load(), 0);
  // Nor does the outside get in.
  EXPECT_EQ(AskFrom(internet_->fd(), SOCK_STREAM, address, kPort, "", kSilence), "timeout");
}

TEST_F(NetworkTest, DropsForgedSources) {
  Sandbox a = Make("a"), b = Make("b");
  std::string neighbour = FormatIpv4(b.slot.sandbox_address());
  Shell(a.fd(),
        fmt::format("ip addr add {}/32 dev lo && ip addr add 203.0.113.99/32 dev lo", neighbour));
  EXPECT_EQ(AskFrom(a.fd(), SOCK_DGRAM, kPublic, kPort), fmt::format("udp {}", kHost));
  int before = seen_->load();
  EXPECT_EQ(AskFrom(a.fd(), SOCK_DGRAM, kPublic, kPort, neighbour, kSilence), "timeout");
  EXPECT_EQ(AskFrom(a.fd(), SOCK_DGRAM, kPublic, kPort, "203.0.113.99", kSilence), "timeout");
  EXPECT_EQ(seen_->load(), before);
}

TEST_F(NetworkTest, LimitsOpenConnections) {
  Config config = config_;
  config.network_max_connections = 5;
  ASSERT_TRUE(NetworkRoot::SetUp(config).available);
  Sandbox sandbox = Make(), other = Make("other");
  std::string outcomes = InChild(sandbox.fd(), [] {
    std::string text;
    std::vector<UniqueFd> open;
    for (int i = 0; i < 7; ++i) {
      UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      sockaddr_in to = Address(kPublic, kPort);
      connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to);
      pollfd p{.fd = fd.get(), .events = POLLIN};
      // Only those that must not get through are given up soon.
      milliseconds timeout = i < 5 ? kPatience : kSilence;
      text += poll(&p, 1, static_cast<int>(timeout.count())) == 1 ? "y" : "n";
      open.push_back(std::move(fd));
    }
    return text;
  });
  EXPECT_EQ(outcomes, "yyyyynn");
  EXPECT_EQ(AskFrom(other.fd(), SOCK_STREAM, kPublic, kPort), fmt::format("tcp {}", kHost));
}

TEST_F(NetworkTest, SetUpAgainAndTearDownTouchOnlyOurTable) {
  ASSERT_TRUE(RunNft("table inet strangers {\n}\n"));
  Sandbox sandbox = Make();
  NetworkRoot again = NetworkRoot::SetUp(config_);
  ASSERT_TRUE(again.available) << again.reason;
  EXPECT_FALSE(again.forwarding_was_off);
  EXPECT_EQ(AskFrom(sandbox.fd(), SOCK_STREAM, kPublic, kPort), fmt::format("tcp {}", kHost));
  std::string table = NftTableName(ServerTag(config_.data_dir));
  EXPECT_THAT(*ReadNft({"list", "tables"}), HasSubstr(table));

  std::string name = sandbox.slot.interface_name();
  EXPECT_NE(if_nametoindex(name.c_str()), 0u);
  sandbox = {};
  auto deadline = Clock::now() + kPatience;
  while (if_nametoindex(name.c_str()) != 0 && Clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(if_nametoindex(name.c_str()), 0u) << "the interface outlived its sandbox";
  ASSERT_TRUE(NetworkRoot::TearDown(config_));
  ASSERT_TRUE(NetworkRoot::TearDown(config_));
  EXPECT_EQ(Trim(*ReadNft({"list", "tables"})), "table inet strangers");
}

TEST_F(NetworkTest, WaitsForTheInterfaceOfADeadSandbox) {
  config_.max_slots = 2;  // one number only
  auto table = SlotTable::Open(config_, config_.data_dir + "/run1");
  ASSERT_TRUE(table);
  for (int i = 0; i < 5; ++i) {
    Namespace space;
    auto slot = (*table)->Allocate("sb");
    ASSERT_TRUE(slot);
    Status made = link_->CreateVeth(*slot, space.fd());
    ASSERT_TRUE(made) << made.error().message();
  }
}

// Inside a sandbox: a datagram from a port of our choice, and what comes back.
std::string AskFromPort(int netns, uint16_t port, milliseconds timeout) {
  return InChild(netns, [&]() -> std::string {
    UniqueFd fd(socket(AF_INET, SOCK_DGRAM, 0));
    sockaddr_in from = Address("0.0.0.0", port), to = Address(kPublic, kPort);
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&from), sizeof from) != 0) return "cannot bind";
    (void)!sendto(fd.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
    pollfd p{.fd = fd.get(), .events = POLLIN};
    if (poll(&p, 1, static_cast<int>(timeout.count())) == 0) return "timeout";
    char buffer[256];
    ssize_t n = recv(fd.get(), buffer, sizeof buffer, 0);
    return n < 0 ? strerror(errno) : std::string(buffer, static_cast<size_t>(n));
  });
}

TEST_F(NetworkTest, WhatADeadSandboxHadOpenIsNotTheNextOnes) {
  constexpr uint16_t kFrom = 40'000;
  config_.max_slots = 2;  // one number only
  table_ = *SlotTable::Open(config_, config_.data_dir + "/run1");
  auto firewall = Firewall::Open(root_.rules.table);
  ASSERT_TRUE(firewall);
  Egress nothing{.deny = {"0.0.0.0/0"}};
  auto refuse_all = [&](uint32_t address) {
    return firewall->Replace(address, EgressPolicy(Egress{}), EgressPolicy(nothing));
  };
  enum class Cleaning { kNone, kAtItsEnd, kOfStrays };
  for (Cleaning cleaning : {Cleaning::kNone, Cleaning::kAtItsEnd, Cleaning::kOfStrays}) {
    Sandbox open = Make();
    uint32_t address = open.slot.sandbox_address();
    ASSERT_TRUE(firewall->ForgetConnections(address));
    EXPECT_FALSE(*firewall->HasConnections(address));
    EXPECT_EQ(AskFromPort(open.fd(), kFrom, kPatience), fmt::format("udp {}", kHost));
    EXPECT_TRUE(*firewall->HasConnections(address));
    open.space.reset();
    if (cleaning == Cleaning::kAtItsEnd) {
      ASSERT_TRUE(link_->TakeDown(open.slot));
      ASSERT_TRUE(firewall->ForgetConnections(address));
      EXPECT_FALSE(*firewall->HasConnections(address));
    }
    open.slot.Release();
    if (cleaning == Cleaning::kOfStrays) {
      ASSERT_TRUE(firewall->ForgetStrays(root_.rules.network, [&](uint32_t source) {
        return table_->IsTaken(NumberOf(root_.rules.network, source));
      }));
    }

    Sandbox closed = Make("sb2");
    ASSERT_EQ(closed.slot.sandbox_address(), address);
    ASSERT_TRUE(refuse_all(address));
    int before = seen_->load();
    // Without cleaning it gets out: this test would notice.
    bool leaks = cleaning == Cleaning::kNone;
    std::string answer = AskFromPort(closed.fd(), kFrom, leaks ? kPatience : kSilence);
    EXPECT_EQ(answer.starts_with("udp"), leaks) << answer;
    EXPECT_EQ(seen_->load() - before, leaks ? 1 : 0);
    ASSERT_TRUE(firewall->Replace(address, EgressPolicy(nothing), EgressPolicy(Egress{})));
  }
}

TEST_F(NetworkTest, RemovesTheInterfaceOfADeadSandboxThatStays) {
  config_.max_slots = 2;
  table_ = *SlotTable::Open(config_, config_.data_dir + "/run1");
  Sandbox dead = Make();
  UniqueFd kept(dup(dead.fd()));  // as a socket that waits for its last acknowledgement does
  dead.space.reset();
  ASSERT_TRUE(link_->TakeDown(dead.slot));
  dead.slot.Release();
  Sandbox next = Make("sb2");
  EXPECT_EQ(AskFrom(next.fd(), SOCK_STREAM, kPublic, kPort), fmt::format("tcp {}", kHost));
}

TEST_F(NetworkTest, CostOfVethAndConfigure) {
  constexpr int kRounds = 50;
  std::vector<double> outside, inside;
  for (int i = 0; i < kRounds; ++i) {
    Namespace space;
    Slot slot = *table_->Allocate("sb");
    auto begin = Clock::now();
    ASSERT_TRUE(link_->CreateVeth(slot, space.fd()));
    outside.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    std::string us = InChild(space.fd(), [&] {
      auto start = Clock::now();
      if (!ConfigureInside(InsideOf(slot))) return std::string("failed");
      return std::to_string((Clock::now() - start) / std::chrono::microseconds(1));
    });
    auto number = ParseInt<int>(us);
    ASSERT_TRUE(number) << us;
    inside.push_back(*number);
  }
  auto median = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
    return v[v.size() / 2];
  };
  printf("network: veth %.0f us, inside %.0f us (medians)\n", median(outside), median(inside));
  // No figure of speed, which benchmarks measure: only that nothing waits for a timeout.
  EXPECT_LT(median(outside) + median(inside), 2'000'000);
}

TEST_F(NetworkTest, ProbeLeavesNothing) {
  std::string before = *ReadNft({"list", "ruleset"});
  Status probed = NetworkRoot::Probe(config_);
  EXPECT_TRUE(probed) << probed.error().message();
  EXPECT_EQ(*ReadNft({"list", "ruleset"}), before);
  EXPECT_EQ(if_nametoindex("veth0"), 0u);
}

TEST_F(NetworkTest, OffMeansOff) {
  config_.network = "none";
  NetworkRoot off = NetworkRoot::SetUp(config_);
  EXPECT_FALSE(off.available);
  EXPECT_THAT(off.reason, HasSubstr("none"));
  Namespace space;
  EXPECT_EQ(InChild(space.fd(),
                    [] {
                      return ConfigureLoopback() ? Ask(SOCK_STREAM, "127.0.0.1", 1)
                                                 : std::string("failed");
                    }),
            strerror(ECONNREFUSED));
  EXPECT_EQ(AskFrom(space.fd(), SOCK_STREAM, kPublic, kPort), strerror(ENETUNREACH));
}

}  // namespace
}  // namespace caisson::engine

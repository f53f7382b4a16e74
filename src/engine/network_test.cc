// The network of sandboxes, for real, in network namespaces of the test's own: the test process is
// the host, one namespace is "the internet" with public and private addresses, others are
// sandboxes. No packet leaves them.
#include "engine/network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "engine/nft.h"

namespace caisson::engine {
namespace {

using testing::HasSubstr;
using testing::Not;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kHost = "203.0.113.1";
constexpr const char* kPublic = "203.0.113.80";
constexpr const char* kResolver = "10.1.2.3";
constexpr int kPort = 8080;

// Runs the body in a child process and returns what it answers.
std::string InChild(int netns, const std::function<std::string()>& body) {
  int fds[2];
  EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    std::string text = netns >= 0 && setns(netns, CLONE_NEWNET) != 0 ? "setns failed" : body();
    _exit(write(fds[1], text.data(), text.size()) < 0);
  }
  close(fds[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fds[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(fds[0]);
  waitpid(pid, nullptr, 0);
  return text;
}

void Shell(int netns, const std::string& command) {
  EXPECT_EQ(InChild(netns, [&] { return std::to_string(system(command.c_str())); }), "0")
      << command;
}

sockaddr_in Address(const std::string& host, int port) {
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}
std::string Text(const sockaddr_in& address) { return FormatIpv4(ntohl(address.sin_addr.s_addr)); }

// Answers from the address that was asked, as a server with several must.
void AnswerDatagram(int fd) {
  char data[512], control[256];
  sockaddr_in from{};
  iovec part{data, sizeof data};
  msghdr message{.msg_name = &from,
                 .msg_namelen = sizeof from,
                 .msg_iov = &part,
                 .msg_iovlen = 1,
                 .msg_control = control,
                 .msg_controllen = sizeof control};
  if (recvmsg(fd, &message, 0) < 0) return;
  std::string text = "udp " + Text(from);
  part = {text.data(), text.size()};
  auto* info = reinterpret_cast<in_pktinfo*>(CMSG_DATA(CMSG_FIRSTHDR(&message)));
  info->ipi_ifindex = 0;
  info->ipi_spec_dst = info->ipi_addr;
  sendmsg(fd, &message, 0);
}

// Says over TCP and UDP who it thinks the caller is. Counts datagrams in `seen`.
void Serve(int port, std::atomic<int>* seen) {
  int tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
  int on = 1;
  setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(udp, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
  sockaddr_in any = Address("0.0.0.0", port);
  if (bind(tcp, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 || listen(tcp, 64) != 0 ||
      bind(udp, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0)
    _exit(1);
  std::vector<int> kept;  // connections stay open until the other side goes
  while (true) {
    pollfd fds[2] = {{tcp, POLLIN, 0}, {udp, POLLIN, 0}};
    poll(fds, 2, -1);
    sockaddr_in from{};
    socklen_t size = sizeof from;
    if (fds[0].revents) {
      int fd = accept(tcp, reinterpret_cast<sockaddr*>(&from), &size);
      std::string text = "tcp " + Text(from);
      (void)!write(fd, text.data(), text.size());
      kept.push_back(fd);
      if (kept.size() > 50) {
        close(kept.front());
        kept.erase(kept.begin());
      }
    }
    if (fds[1].revents) {
      AnswerDatagram(udp);
      seen->fetch_add(1);
    }
  }
}

// What a program there sees when it connects: the server's words, or the error.
std::string Ask(int type, const std::string& host, int port, const std::string& source = "",
                milliseconds timeout = milliseconds(500)) {
  UniqueFd fd(socket(AF_INET, type | SOCK_NONBLOCK, 0));
  sockaddr_in to = Address(host, port), from = Address(source, 0);
  if (!source.empty() && bind(fd.get(), reinterpret_cast<sockaddr*>(&from), sizeof from) != 0)
    return "cannot bind";
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS)
    return strerror(errno);
  if (type == SOCK_DGRAM) (void)!send(fd.get(), "x", 1, 0);
  pollfd p{.fd = fd.get(), .events = POLLIN};
  if (poll(&p, 1, static_cast<int>(timeout.count())) == 0) return "timeout";
  char buffer[256];
  ssize_t n = recv(fd.get(), buffer, sizeof buffer, 0);
  return n < 0 ? strerror(errno) : std::string(buffer, static_cast<size_t>(n));
}
std::string AskFrom(int netns, int type, const std::string& host, int port,
                    const std::string& source = "") {
  return InChild(netns, [&] { return Ask(type, host, port, source); });
}

// A process with a network namespace of its own; gone with the object.
class Namespace {
 public:
  explicit Namespace(const std::function<void()>& body = [] {}) {
    int ready[2];
    EXPECT_EQ(pipe2(ready, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (unshare(CLONE_NEWNET) != 0) _exit(1);
      (void)!write(ready[1], "x", 1);
      body();
      while (true) pause();
    }
    char c;
    close(ready[1]);
    EXPECT_EQ(read(ready[0], &c, 1), 1);
    close(ready[0]);
    fd_.Reset(open(fmt::format("/proc/{}/ns/net", pid_).c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(fd_);
  }
  ~Namespace() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  int fd() const { return fd_.get(); }
  pid_t pid() const { return pid_; }

  // Another process in it, ended together with it by the test's end.
  pid_t Start(const std::function<void()>& body) const {
    pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (setns(fd_.get(), CLONE_NEWNET) != 0) _exit(1);
      body();
      _exit(0);
    }
    return pid;
  }

 private:
  pid_t pid_ = 0;
  UniqueFd fd_;
};

class NetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(unshare(CLONE_NEWNET), 0);
    // A new namespace starts with the machine's own setting.
    ASSERT_TRUE(WriteKernelFile("/proc/sys/net/ipv4/ip_forward", "0"));
    char path[] = "/tmp/caisson-network-test-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    config_.data_dir = path;
    config_.dns = kResolver;
    seen_ = static_cast<std::atomic<int>*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    internet_ = std::make_unique<Namespace>();
    Shell(-1, fmt::format("ip link set lo up && ip link add up0 mtu 1400 type veth peer name pub0 "
                          "netns {} && ip addr add {}/24 dev up0 && ip link set up0 up",
                          internet_->pid(), kHost));
    std::string far = fmt::format(
        "ip link set lo up && ip link set pub0 up && ip addr add {}/24 dev pub0", kPublic);
    for (const char* address : {kResolver, "192.168.7.7", "172.16.3.4", "169.254.169.254",
                                "100.64.1.1", "198.19.200.200", "192.0.0.8"})
      far += fmt::format(" && ip addr add {}/32 dev lo", address);
    Shell(internet_->fd(), far + fmt::format(" && ip route add default via {}", kHost));
    Shell(-1, fmt::format("ip route add default via {}", kPublic));
    servers_.push_back(internet_->Start([this] { Serve(kPort, seen_); }));
    servers_.push_back(internet_->Start([this] { Serve(53, seen_ + 1); }));

    root_ = NetworkRoot::SetUp(config_);
    ASSERT_TRUE(root_.available) << root_.reason;
    auto table = SlotTable::Open(config_, config_.data_dir + "/run");
    ASSERT_TRUE(table) << table.error().message();
    table_ = std::move(*table);
    auto link = HostLink::Open(root_);
    ASSERT_TRUE(link) << link.error().message();
    link_ = std::make_unique<HostLink>(std::move(*link));
    WaitForServer(kPublic, kPort);
  }
  void TearDown() override {
    for (pid_t pid : servers_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    ASSERT_TRUE(RemoveTree(config_.data_dir));
    munmap(seen_, 4096);
  }

  void WaitForServer(const std::string& host, int port) {
    auto deadline = Clock::now() + std::chrono::seconds(5);
    while (!Ask(SOCK_STREAM, host, port).starts_with("tcp") && Clock::now() < deadline)
      std::this_thread::sleep_for(milliseconds(5));
  }

  struct Sandbox {
    std::unique_ptr<Namespace> space;
    Slot slot;
    int fd() const { return space->fd(); }
  };
  Sandbox Make(const std::string& id = "sb1") {
    Sandbox sandbox{std::make_unique<Namespace>(), *table_->Allocate(id)};
    Status made = link_->CreateVeth(sandbox.slot, sandbox.fd());
    EXPECT_TRUE(made) << made.error().message();
    EXPECT_EQ(InChild(sandbox.fd(),
                      [&] {
                        Status done = ConfigureInside(InsideOf(sandbox.slot));
                        return done ? "" : done.error().message();
                      }),
              "");
    EXPECT_TRUE(link_->Settle(sandbox.slot));
    return sandbox;
  }

  Config config_;
  std::atomic<int>* seen_ = nullptr;  // datagrams at kPort, [1]: at 53
  std::unique_ptr<Namespace> internet_;
  std::vector<pid_t> servers_;
  NetworkRoot root_;
  std::unique_ptr<SlotTable> table_;
  std::unique_ptr<HostLink> link_;
};

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
    EXPECT_THAT(AskFrom(sandbox.fd(), SOCK_DGRAM, address, kPort),
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
  auto deadline = Clock::now() + std::chrono::seconds(5);
  while (AskFrom(b.fd(), SOCK_STREAM, "127.0.0.1", kPort) != "tcp 127.0.0.1")
    ASSERT_LT(Clock::now(), deadline);
  EXPECT_EQ(AskFrom(a.fd(), SOCK_STREAM, address, kPort), strerror(ECONNREFUSED));
  EXPECT_EQ(AskFrom(a.fd(), SOCK_DGRAM, address, kPort), strerror(EHOSTUNREACH));
  EXPECT_EQ(seen_[2].load(), 0);
  // Nor does the outside get in.
  EXPECT_EQ(AskFrom(internet_->fd(), SOCK_STREAM, address, kPort), "timeout");
}

TEST_F(NetworkTest, DropsForgedSources) {
  Sandbox a = Make("a"), b = Make("b");
  std::string neighbour = FormatIpv4(b.slot.sandbox_address());
  Shell(a.fd(),
        fmt::format("ip addr add {}/32 dev lo && ip addr add 203.0.113.99/32 dev lo", neighbour));
  EXPECT_EQ(AskFrom(a.fd(), SOCK_DGRAM, kPublic, kPort), fmt::format("udp {}", kHost));
  int before = seen_->load();
  EXPECT_EQ(AskFrom(a.fd(), SOCK_DGRAM, kPublic, kPort, neighbour), "timeout");
  EXPECT_EQ(AskFrom(a.fd(), SOCK_DGRAM, kPublic, kPort, "203.0.113.99"), "timeout");
  EXPECT_EQ(seen_->load(), before);
}

TEST_F(NetworkTest, DnsAddressLeadsToTheResolver) {
  Sandbox sandbox = Make();
  EXPECT_EQ(AskFrom(sandbox.fd(), SOCK_DGRAM, "198.18.0.1", 53), fmt::format("udp {}", kHost));
  EXPECT_EQ(AskFrom(sandbox.fd(), SOCK_STREAM, "198.18.0.1", 53), fmt::format("tcp {}", kHost));
  EXPECT_EQ(seen_[1].load(), 1);
  // Only port 53 of it.
  EXPECT_EQ(AskFrom(sandbox.fd(), SOCK_STREAM, "198.18.0.1", kPort), strerror(ECONNREFUSED));
}

TEST_F(NetworkTest, DnsMayBeTheHostItself) {
  Config config = config_;
  config.dns = kHost;
  ASSERT_TRUE(NetworkRoot::SetUp(config).available);
  pid_t server = fork();
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Serve(53, seen_ + 2);
  }
  servers_.push_back(server);
  WaitForServer("127.0.0.1", 53);
  Sandbox sandbox = Make();
  std::string own = FormatIpv4(sandbox.slot.sandbox_address());
  EXPECT_EQ(AskFrom(sandbox.fd(), SOCK_DGRAM, "198.18.0.1", 53), "udp " + own);
  EXPECT_EQ(AskFrom(sandbox.fd(), SOCK_DGRAM, kHost, 53), strerror(EHOSTUNREACH));
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
      text += poll(&p, 1, 300) == 1 ? "y" : "n";
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
  auto deadline = Clock::now() + std::chrono::seconds(5);
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
  EXPECT_LT(median(outside) + median(inside), 50'000);
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

// For tests of the network, for real, in network namespaces of their own: the test process is the
// host, one namespace is "the internet" with public and private addresses, others are
// sandboxes. No packet leaves them.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
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
#include "engine/network.h"
#include "engine/nft.h"

namespace caisson::engine {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kHost = "203.0.113.1";
constexpr const char* kPublic = "203.0.113.80";
constexpr const char* kResolver = "10.1.2.3";
constexpr int kPort = 8080;
// An answer that must come, also on a busy machine.
constexpr milliseconds kPatience{30'000};
// That none comes: whoever is slow waits in vain all the more.
constexpr milliseconds kSilence{500};

// Runs the body in a child process and returns what it answers.
inline std::string InChild(int netns, const std::function<std::string()>& body) {
  int fds[2];
  EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(120);
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

inline void Shell(int netns, const std::string& command) {
  EXPECT_EQ(InChild(netns, [&] { return std::to_string(system(command.c_str())); }), "0")
      << command;
}

inline sockaddr_in Address(const std::string& host, int port) {
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}
inline std::string Text(const sockaddr_in& address) {
  return FormatIpv4(ntohl(address.sin_addr.s_addr));
}

// Answers from the address that was asked, as a server with several must.
inline void AnswerDatagram(int fd) {
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
inline void Serve(int port, std::atomic<int>* seen) {
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
      seen->fetch_add(1);  // before the answer: who has it may look at once
      AnswerDatagram(udp);
    }
  }
}

// What a program there sees when it connects: the server's words, or the error.
inline std::string Ask(int type, const std::string& host, int port, const std::string& source = "",
                       milliseconds timeout = kPatience) {
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
inline std::string AskFrom(int netns, int type, const std::string& host, int port,
                           const std::string& source = "", milliseconds timeout = kPatience) {
  return InChild(netns, [&] { return Ask(type, host, port, source, timeout); });
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
    auto deadline = Clock::now() + kPatience;
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

}  // namespace caisson::engine

#include "engine/nft.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/text.h"

namespace caisson::engine {
namespace {

// Nothing of the internet lives there. 198.18.0.0/15 holds the sandboxes themselves by default;
// 192.0.0.0/24 and 240.0.0.0/4 are reserved; 169.254.0.0/16 has the metadata services of clouds.
constexpr std::string_view kNotInternet =
    "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, "
    "192.0.0.0/24, 192.168.0.0/16, 198.18.0.0/15, 224.0.0.0/3";

constexpr size_t kMaxOutput = 4 << 20;

using Clock = std::chrono::steady_clock;

int MillisecondsUntil(Clock::time_point deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

// What nft prints, until it closes its output. False when the deadline passed first.
bool ReadAll(int fd, std::string& output, Clock::time_point deadline) {
  while (true) {
    pollfd p{.fd = fd, .events = POLLIN};
    int ready = poll(&p, 1, MillisecondsUntil(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char buffer[16384];
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n <= 0) return true;
    if (output.size() < kMaxOutput) output.append(buffer, static_cast<size_t>(n));
  }
}

[[noreturn]] void ExecNft(int input, int output, const std::vector<const char*>& arguments) {
  dup2(input, 0);
  dup2(output, 1);
  dup2(output, 2);
  // SECURITY: fixed places and no environment, not the caller's PATH: we are root.
  char* const environment[] = {nullptr};
  for (const char* path : {"/usr/sbin/nft", "/sbin/nft", "/usr/local/sbin/nft", "/usr/bin/nft"})
    execve(path, const_cast<char* const*>(arguments.data()), environment);
  _exit(127);
}

// Runs nft with these arguments and this standard input; both its outputs together come back.
Result<std::string> Run(std::vector<const char*> arguments, std::string_view text,
                        std::chrono::milliseconds timeout) {
  arguments.insert(arguments.begin(), "nft");
  arguments.push_back(nullptr);
  // The input is a file in memory: no pipe to feed while nft prints.
  UniqueFd input(memfd_create("nft", MFD_CLOEXEC));
  if (!input || write(input.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(input.get(), 0, SEEK_SET) != 0)
    return FailErrno("cannot prepare the rules");
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return FailErrno("cannot make a pipe");
  UniqueFd output_end(fds[0]), child_end(fds[1]);

  auto deadline = Clock::now() + timeout;
  pid_t pid = fork();
  if (pid < 0) return FailErrno("cannot start nft");
  if (pid == 0) ExecNft(input.get(), child_end.get(), arguments);
  child_end.Reset();
  std::string output;
  bool finished = ReadAll(output_end.get(), output, deadline);
  if (!finished) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!finished) return Fail(Code::kDeadlineExceeded, "nft did not finish in time");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    return Fail(Code::kNotFound, "the program nft is not installed (package nftables)");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Fail(Code::kFailedPrecondition, "nft refused: {}", Trim(output));
  return output;
}

}  // namespace

std::string NftTableName(std::string_view server_tag) {
  return fmt::format("caisson_{}", server_tag);
}

std::string RenderNftRemoval(const std::string& table) {
  // "add" first: deleting what is not there would be an error.
  return fmt::format("add table inet {0}\ndelete table inet {0}\n", table);
}

std::string RenderNftRules(const NftRules& rules) {
  std::string network = fmt::format("{}/{}", FormatIpv4(rules.network.base), rules.network.prefix);
  std::string dns_address = FormatIpv4(kDnsAddress);
  std::string dnat;
  if (!rules.dns.empty())
    dnat = fmt::format(
        "    iifname \"{0}*\" ip daddr {1} udp dport 53 dnat ip to {2}\n"
        "    iifname \"{0}*\" ip daddr {1} tcp dport 53 dnat ip to {2}\n",
        rules.interface_prefix, dns_address, rules.dns);
  // A packet from a sandbox meets: guard, dns_to_resolver, then input (to the host) or forward.
  return RenderNftRemoval(rules.table) +
         fmt::format(R"(table inet {table} {{
  set not_internet {{
    type ipv4_addr
    flags interval
    auto-merge
    elements = {{ {not_internet}, {network} }}
  }}
  set connections {{
    type ipv4_addr
    size 65535
    flags dynamic
  }}
  # No IPv6, no forged source addresses (the reply must leave by the same interface).
  chain guard {{
    type filter hook prerouting priority raw; policy accept;
    iifname "{prefix}*" meta nfproto ipv6 drop
    iifname "{prefix}*" fib saddr . iif oif missing drop
  }}
  chain dns_to_resolver {{
    type nat hook prerouting priority dstnat; policy accept;
{dnat}  }}
  # Nothing of the host is for sandboxes, but for its resolver when that is the host itself.
  chain input {{
    type filter hook input priority filter; policy accept;
    iifname != "{prefix}*" accept
    ct status dnat ct original ip daddr {dns_address} accept
    meta l4proto tcp reject with tcp reset
    reject with icmpx type admin-prohibited
  }}
  chain forward {{
    type filter hook forward priority filter; policy accept;
    iifname "{prefix}*" jump from_sandbox
    oifname "{prefix}*" jump to_sandbox
  }}
  chain from_sandbox {{
    ct state invalid drop
    ct state established,related accept
    add @connections {{ ip saddr ct count over {max_connections} }} drop
    # Only what we redirected: others on this machine redirect too (published container ports).
    ct status dnat ct original ip daddr {dns_address} accept
    ip daddr @not_internet meta l4proto tcp reject with tcp reset
    ip daddr @not_internet reject with icmpx type admin-prohibited
    accept
  }}
  chain to_sandbox {{
    ct state established,related accept
    drop
  }}
  chain to_internet {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {network} oifname != "{prefix}*" masquerade
  }}
}}
)",
                     fmt::arg("table", rules.table), fmt::arg("not_internet", kNotInternet),
                     fmt::arg("network", network), fmt::arg("prefix", rules.interface_prefix),
                     fmt::arg("dnat", dnat), fmt::arg("dns_address", dns_address),
                     fmt::arg("max_connections", rules.max_connections));
}

Status RunNft(std::string_view text, std::chrono::milliseconds timeout) {
  TRY(Run({"-f", "-"}, text, timeout));
  return {};
}

Result<std::string> ReadNft(std::initializer_list<const char*> arguments,
                            std::chrono::milliseconds timeout) {
  return Run(arguments, {}, timeout);
}

}  // namespace caisson::engine

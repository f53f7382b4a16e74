#include "engine/nft.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text.h"
#include "engine/egress.h"

namespace caisson::engine {
namespace {

constexpr size_t kMaxOutput = 4 << 20;

using Clock = std::chrono::steady_clock;

int ParseHex16(std::string_view digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

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

// The line of a set that has elements from the beginning.
std::string Elements(const std::string& list) {
  return list.empty() ? "" : fmt::format("    elements = {{ {} }}\n", list);
}

}  // namespace

int LogGroup(std::string_view server_tag) {
  // 0 is the kernel's own log on some machines.
  return std::max(1, ParseHex16(server_tag.substr(0, 4)));
}

std::string NftTableName(std::string_view server_tag) {
  return fmt::format("caisson_{}", server_tag);
}

std::string RenderNftRemoval(const std::string& table) {
  // "add" first: deleting what is not there would be an error.
  return fmt::format("add table inet {0}\ndelete table inet {0}\n", table);
}

std::string RenderNftRules(const NftRules& rules) {
  std::string network = fmt::format("{}/{}", FormatIpv4(rules.network.base), rules.network.prefix);
  std::string not_internet;
  for (const auto* blocks : {&NotInternet(), &rules.never})
    for (const Cidr& block : *blocks)
      not_internet += fmt::format("{}/{}, ", FormatIpv4(block.base), block.prefix);
  std::string denied, named, used;
  for (const Resident& sandbox : rules.residents) {
    EgressPolicy policy(sandbox.egress);
    std::string address = FormatIpv4(sandbox.address);
    used += address + ", ";
    for (Range range : policy.denied())
      denied +=
          fmt::format("{} . {}-{}, ", address, FormatIpv4(range.first), FormatIpv4(range.last));
    if (policy.filters_names()) named += address + ", ";
  }
  // A packet from a sandbox meets: guard, led_away, then input (to the host) or forward.
  return RenderNftRemoval(rules.table) +
         fmt::format(R"(table inet {table} {{
  set not_internet {{
    type ipv4_addr
    flags interval
    auto-merge
    elements = {{ {not_internet}{network} }}
  }}
  set denied {{
    type ipv4_addr . ipv4_addr
    flags interval
{denied}  }}
  set admitted {{
    type ipv4_addr . ipv4_addr
  }}
  set named {{
    type ipv4_addr
{named}  }}
  set used {{
    type ipv4_addr
    size 65535
    flags dynamic
{used}  }}
  set connections {{
    type ipv4_addr
    size 65535
    flags dynamic
  }}
  set reported {{
    type ipv4_addr
    size 65535
    flags dynamic,timeout
    timeout 1m
  }}
  # No IPv6, no forged source addresses (the reply must leave by the same interface).
  chain guard {{
    type filter hook prerouting priority raw; policy accept;
    iifname "{prefix}*" meta nfproto ipv6 drop
    iifname "{prefix}*" fib saddr . iif oif missing drop
  }}
  chain led_away {{
    type nat hook prerouting priority dstnat; policy accept;
  }}
  # Nothing of the host is for sandboxes.
  chain input {{
    type filter hook input priority filter; policy accept;
    iifname "{prefix}*" goto refuse
  }}
  chain forward {{
    type filter hook forward priority filter; policy accept;
    iifname "{prefix}*" jump from_sandbox
    oifname "{prefix}*" jump to_sandbox
  }}
  chain from_sandbox {{
    ct state invalid drop
    ct state established,related accept
    add @used {{ ip saddr }}
    add @connections {{ ip saddr ct count over {max_connections} }} drop
    # Only what we redirected (others on this machine redirect too: published container ports), and
    # only to a resolver that is there: else it would go out by the default route.
    oifname "{prefix}*" ct status dnat ct original ip daddr {dns_address} accept
    ip daddr @not_internet goto refuse
    ip saddr . ip daddr @admitted goto out
    ip saddr . ip daddr @denied goto refuse
    goto out
  }}
  chain out {{
    accept
  }}
  chain refuse {{
    update @reported {{ ip saddr limit rate 10/second burst 20 packets }} log group {group} snaplen 64
    meta l4proto tcp reject with tcp reset
    reject with icmpx type admin-prohibited
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
                     fmt::arg("table", rules.table), fmt::arg("not_internet", not_internet),
                     fmt::arg("denied", Elements(denied)), fmt::arg("named", Elements(named)),
                     fmt::arg("used", Elements(used)), fmt::arg("network", network),
                     fmt::arg("prefix", rules.interface_prefix),
                     fmt::arg("dns_address", FormatIpv4(kDnsAddress)),
                     fmt::arg("group", rules.log_group),
                     fmt::arg("max_connections", rules.max_connections));
}

std::string RenderRedirections(const NftRules& rules, const Redirections& redirections) {
  auto add = [&](std::string_view chain, const std::string& rule) {
    return fmt::format("add rule inet {} {} iifname \"{}*\" {}\n", rules.table, chain,
                       rules.interface_prefix, rule);
  };
  std::string text =
      fmt::format("flush chain inet {0} led_away\nflush chain inet {0} input\n", rules.table);
  for (const char* protocol : {"udp", "tcp"})
    for (bool filtered : {true, false})
      text +=
          add("led_away", fmt::format("ip daddr {} {}{} dport 53 dnat ip to {}:{}",
                                      FormatIpv4(kDnsAddress), filtered ? "ip saddr @named " : "",
                                      protocol, FormatIpv4(redirections.resolver),
                                      filtered ? kFilteredDnsPort : kOpenDnsPort));
  if (redirections.relay) {
    std::string relay = FormatIpv4(redirections.relay);
    std::string dnat = fmt::format("meta l4proto tcp dnat ip to {}:{}", relay, kRelayPort);
    // What is not led there goes on to from_sandbox, which refuses it.
    text += add("led_away", "ip daddr @not_internet return");
    text += add("led_away", "fib daddr type local return");
    text += add("led_away", "ip saddr . ip daddr @admitted " + dnat);
    text += add("led_away", "ip saddr . ip daddr @denied return");
    text += add("led_away", dnat);
    std::string led = fmt::format("ct status dnat ip daddr {} tcp dport {}", relay, kRelayPort);
    text += add("input", led + " ct state established accept");
    text += add("input", led + " add @used { ip saddr }");
    text += add("input", fmt::format("{} add @connections {{ ip saddr ct count over {} }} drop",
                                     led, rules.max_connections));
    text += add("input", led + " accept");
    text +=
        fmt::format("flush chain inet {0} out\nadd rule inet {0} out goto refuse\n", rules.table);
  }
  return text + add("input", "goto refuse");
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

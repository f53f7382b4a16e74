#include "work/open_ports.h"

#include <map>
#include <set>

#include "base/text.h"
#include "git/broker.h"

namespace caisson::work {
namespace {

constexpr uint16_t kEnvdPort = 49'983;
constexpr std::chrono::milliseconds kTimeout{10'000};
constexpr size_t kMaxOutput = 4 << 20;
constexpr size_t kMaxName = 64;
constexpr std::string_view kMark = "====";

// The sockets; then who holds which; then what these are called. Without any program that a
// template may not have.
constexpr std::string_view kScript =
    "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null; echo ====; "
    "ls -l /proc/[0-9]*/fd 2>/dev/null; echo ====; "
    "for p in /proc/[0-9]*; do read -r c 2>/dev/null < $p/comm && echo \"$p $c\"; done; true";

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::string_view word : Split(line, ' '))
    if (!word.empty()) words.push_back(word);
  return words;
}

// "/proc/12/..." -> "12"
std::string_view PidOf(std::string_view path) {
  constexpr std::string_view kProc = "/proc/";
  if (!path.starts_with(kProc)) return {};
  path.remove_prefix(kProc.size());
  return path.substr(0, path.find_first_of("/: "));
}

// Lines of /proc/net/tcp: sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
std::map<uint16_t, std::set<std::string>> ListeningSockets(std::string_view text) {
  constexpr std::string_view kListen = "0A";
  std::map<uint16_t, std::set<std::string>> sockets;
  for (std::string_view line : Split(text, '\n')) {
    auto words = Words(line);
    if (words.size() < 10 || words[3] != kListen) continue;
    size_t colon = words[1].rfind(':');
    if (colon == std::string_view::npos) continue;
    std::string_view hex = words[1].substr(colon + 1);
    uint16_t port = 0;
    auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), port, 16);
    if (error != std::errc() || end != hex.data() + hex.size() || port == 0) continue;
    sockets[port].insert(std::string(words[9]));
  }
  return sockets;
}

// Lines of `ls -l`: "/proc/12/fd:", then "... 3 -> socket:[4711]" -> pid by inode.
std::map<std::string, std::string> Holders(std::string_view text) {
  constexpr std::string_view kSocket = "-> socket:[";
  std::map<std::string, std::string> holders;
  std::string pid;
  for (std::string_view line : Split(text, '\n')) {
    if (line.starts_with("/proc/")) pid = PidOf(line);
    size_t at = line.find(kSocket);
    if (at == std::string_view::npos || !line.ends_with(']')) continue;
    std::string_view inode = line.substr(at + kSocket.size());
    inode.remove_suffix(1);
    holders.emplace(inode, pid);
  }
  return holders;
}

// Lines "/proc/12 node".
std::map<std::string, std::string> Names(std::string_view text) {
  std::map<std::string, std::string> names;
  for (std::string_view line : Split(text, '\n')) {
    size_t space = line.find(' ');
    std::string_view pid = PidOf(line);
    if (pid.empty() || space == std::string_view::npos) continue;
    names.emplace(pid, ToUtf8(line.substr(space + 1, kMaxName)));
  }
  return names;
}

}  // namespace

std::vector<OpenPort> ParseOpenPorts(std::string_view text) {
  auto part = [&text] {
    size_t end = text.find(kMark);
    std::string_view found = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + kMark.size());
    return found;
  };
  auto sockets = ListeningSockets(part());
  auto holders = Holders(part());
  auto names = Names(part());
  std::vector<OpenPort> ports;
  for (const auto& [port, inodes] : sockets) {
    if (port == kEnvdPort || port == git::Broker::kPort) continue;
    OpenPort open{.port = port};
    for (const std::string& inode : inodes)
      if (auto holder = holders.find(inode); holder != holders.end() && open.process.empty())
        if (auto name = names.find(holder->second); name != names.end())
          open.process = name->second;
    ports.push_back(std::move(open));
  }
  return ports;
}

Task<Result<std::vector<OpenPort>>> FindOpenPorts(Sandboxes& sandboxes, SandboxRow sandbox) {
  if (sandbox.destroyed_at)
    co_return Fail(Code::kFailedPrecondition, "not_running: sandbox '{}' has ended", sandbox.id);
  CO_TRY(sandboxes.CheckHere(sandbox));
  CO_TRY_ASSIGN(auto envd,
                co_await sandboxes.provider().Envd(sandbox.owner_id, sandbox.backend_id));
  sdk::Command command;
  command.argv = {"/bin/sh", "-c", std::string(kScript)};
  command.user = "root";  // who sees whose sockets they are
  command.timeout = kTimeout;
  command.max_output = kMaxOutput;
  CO_TRY_ASSIGN(auto result, co_await envd.Run(std::move(command)));
  if (result.timed_out)
    co_return Fail(Code::kDeadlineExceeded, "the sandbox did not say in time what it listens on");
  co_return ParseOpenPorts(result.stdout_text);
}

}  // namespace caisson::work

#include "envd/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <set>

#include "base/fd.h"
#include "base/text.h"

namespace caisson::envd {
namespace {

// A tree that still grows while it is being stopped is given up on after so many walks.
constexpr int kMaxWalks = 16;

bool Exists(const std::vector<ProcStat>& processes, pid_t pid) {
  for (const ProcStat& process : processes) {
    if (process.pid == pid) return true;
  }
  return false;
}

// Adds to `tree` what belongs to it by session or by parent; true if anything was new.
bool Collect(pid_t root, const std::vector<ProcStat>& processes, std::set<pid_t>& tree) {
  bool grown = false;
  for (bool again = true; again;) {
    again = false;
    for (const ProcStat& process : processes) {
      bool belongs = process.session == root || tree.contains(process.parent);
      if (!belongs || process.pid == getpid() || !tree.insert(process.pid).second) continue;
      kill(process.pid, SIGSTOP);
      grown = again = true;
    }
  }
  return grown;
}

}  // namespace

std::optional<ProcStat> ParseProcStat(std::string_view text) {
  size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  auto pid = ParseInt<pid_t>(Trim(text.substr(0, open)));
  // Fields after the name, counted from 0: state, ppid, pgrp, session, ... (proc(5) counts from 3).
  auto field = Split(Trim(text.substr(close + 1)), ' ');
  // SECURITY: kill(-1) hits everybody, and root of a sandbox may have put a /proc of its own there.
  if (!pid || *pid <= 0 || field.size() < 22) return std::nullopt;
  ProcStat stat;
  stat.pid = *pid;
  stat.parent = ParseInt<pid_t>(field[1]).value_or(0);
  stat.session = ParseInt<pid_t>(field[3]).value_or(0);
  for (size_t i = 11; i <= 14; ++i) stat.cpu_ticks += ParseInt<uint64_t>(field[i]).value_or(0);
  static const auto kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  stat.rss_bytes = ParseInt<uint64_t>(field[21]).value_or(0) * kPage;
  return stat;
}

std::vector<ProcStat> ReadProcesses() {
  std::vector<ProcStat> out;
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir("/proc"), closedir);
  if (!dir) return out;
  while (dirent* item = readdir(dir.get())) {
    if (item->d_name[0] < '0' || item->d_name[0] > '9') continue;
    std::array<char, 64> path;
    snprintf(path.data(), path.size(), "%s/stat", item->d_name);
    UniqueFd fd(openat(dirfd(dir.get()), path.data(), O_RDONLY | O_CLOEXEC));
    if (!fd) continue;
    std::array<char, 1024> text;
    ssize_t size = read(fd.get(), text.data(), text.size());
    if (size <= 0) continue;
    if (auto stat = ParseProcStat({text.data(), static_cast<size_t>(size)})) out.push_back(*stat);
  }
  return out;
}

void KillTree(pid_t root, bool root_alive) {
  std::vector<ProcStat> processes = ReadProcesses();
  // The number was given to somebody else: a session of that number is not ours any more.
  if (!root_alive && Exists(processes, root)) return;
  std::set<pid_t> tree;
  if (root_alive) {
    kill(root, SIGSTOP);
    tree.insert(root);
  }
  for (int walk = 0; walk < kMaxWalks && Collect(root, processes, tree); ++walk)
    processes = ReadProcesses();
  for (pid_t pid : tree) kill(pid, SIGKILL);
}

}  // namespace caisson::envd

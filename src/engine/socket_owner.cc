#include "engine/socket_owner.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <memory>

#include "base/error.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"

namespace caisson::engine {
namespace {

constexpr size_t kMaxTable = 256 << 10;
constexpr int kLooksPerGlance = 32;  // at the clock

std::string ReadUntil(const std::string& path, ThreadClock::time_point deadline) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  ssize_t n;
  while (fd && text.size() < kMaxTable && ThreadClock::now() < deadline &&
         (n = read(fd.get(), buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<size_t>(n));
  return text;
}

// The inode of the socket bound to this port, by a table of /proc/<pid>/net; "" if there is none.
std::string FindInode(const std::string& table, int port, ThreadClock::time_point deadline) {
  std::string text = ReadUntil(table, deadline);
  std::string wanted = fmt::format(":{:04X}", port);
  for (std::string_view line : Split(text, '\n')) {
    // "sl: local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ..."
    std::vector<std::string_view> fields;
    for (std::string_view field : Split(line, ' '))
      if (!field.empty()) fields.push_back(field);
    if (fields.size() > 9 && fields[1].ends_with(wanted) && fields[9] != "0")
      return std::string(fields[9]);
  }
  return "";
}

bool HasSocket(int pid, const std::string& link, ThreadClock::time_point deadline) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(fmt::format("/proc/{}/fd", pid).c_str()),
                                          closedir);
  if (!dir) return false;
  for (int i = 1; i % kLooksPerGlance != 0 || ThreadClock::now() < deadline; ++i) {
    dirent* entry = readdir(dir.get());
    if (!entry) return false;
    char target[64];
    ssize_t n = readlinkat(dirfd(dir.get()), entry->d_name, target, sizeof target);
    if (n > 0 && std::string_view(target, static_cast<size_t>(n)) == link) return true;
  }
  return false;  // out of time
}

SocketOwner Describe(int pid) {
  SocketOwner owner;
  // SECURITY: the name is the sandbox's own choice; it only ever becomes text in an event.
  if (auto name = ReadFile(fmt::format("/proc/{}/comm", pid), 256))
    owner.command = ToUtf8(Trim(*name));
  auto status = ReadFile(fmt::format("/proc/{}/status", pid), 16 << 10);
  if (!status) return owner;
  for (std::string_view line : Split(*status, '\n'))
    if (line.starts_with("NSpid:")) owner.pid = ParseInt<int>(Split(line, '\t').back()).value_or(0);
  return owner;
}

}  // namespace

std::optional<SocketOwner> FindSocketOwner(int init, const std::vector<int>& processes,
                                           int protocol, int port,
                                           ThreadClock::time_point deadline) {
  if (port == 0 || (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)) return std::nullopt;
  std::string name = protocol == IPPROTO_TCP ? "tcp" : "udp";
  std::string table = fmt::format("/proc/{}/net/{}", init, name);
  std::string inode = FindInode(table, port, deadline);
  if (inode.empty()) inode = FindInode(table + "6", port, deadline);
  if (inode.empty()) return std::nullopt;
  std::string link = fmt::format("socket:[{}]", inode);
  for (int pid : processes) {
    if (ThreadClock::now() >= deadline) break;
    if (HasSocket(pid, link, deadline)) return Describe(pid);
  }
  return std::nullopt;
}

}  // namespace caisson::engine

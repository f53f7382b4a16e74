#include "flow/owner.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <optional>

#include "base/file.h"
#include "base/id.h"
#include "base/text.h"

namespace caisson::flow {
namespace {

// A pid means something only within one boot and one process namespace.
std::string Machine() {
  std::string boot = ReadFile("/proc/sys/kernel/random/boot_id", 100).value_or("unknown");
  struct stat info{};
  stat("/proc/self/ns/pid", &info);
  return fmt::format("{}/{}", boot.substr(0, boot.find('\n')), info.st_ino);
}

struct Process {
  char state = '?';
  std::string start_time;  // ticks since boot
};

std::optional<Process> Look(int pid) {
  auto stat = ReadFile(fmt::format("/proc/{}/stat", pid), 4096);
  if (!stat) return std::nullopt;
  // The second field is the program's name, which may hold anything: count from its end.
  size_t end = stat->rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::vector<std::string_view> fields = Split(std::string_view(*stat).substr(end + 2), ' ');
  if (fields.size() < 20) return std::nullopt;
  return Process{fields[0].empty() ? '?' : fields[0][0], std::string(fields[19])};
}

}  // namespace

std::string MakeOwner() {
  std::optional<Process> self = Look(getpid());
  return fmt::format("{}/{}/{}/{}", Machine(), getpid(), self ? self->start_time : "0",
                     RandomHex(4));
}

bool IsKnownDead(const std::string& owner) {
  std::string machine = Machine() + "/";
  if (machine.starts_with("unknown") || !owner.starts_with(machine)) return false;
  std::vector<std::string_view> parts = Split(std::string_view(owner).substr(machine.size()), '/');
  if (parts.size() != 3) return false;
  int pid = 0;
  auto [end, error] = std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), pid);
  if (error != std::errc() || pid <= 0) return false;
  // /proc may hide the processes of other users; kill() does not.
  if (kill(pid, 0) != 0 && errno == ESRCH) return true;
  std::optional<Process> process = Look(pid);
  if (!process) return false;
  return process->state == 'Z' || process->state == 'X' || process->start_time != parts[1];
}

}  // namespace caisson::flow

#include "envd/resources.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "base/time.h"
#include "envd/proc.h"

namespace caisson::envd {
namespace {

uint64_t UsedMemory(const std::vector<ProcStat>& processes) {
  uint64_t used = 0;
  for (const ProcStat& process : processes) used += process.rss_bytes;
  return used;
}

// Page cache of the sandbox, where its cgroup can be seen from inside.
uint64_t CachedMemory() {
  auto text = ReadFile("/sys/fs/cgroup/memory.stat", 64 << 10);
  if (!text) return 0;
  for (std::string_view line : Split(*text, '\n')) {
    if (line.starts_with("file ")) return ParseInt<uint64_t>(line.substr(5)).value_or(0);
  }
  return 0;
}

double ParseCpus(const char* text) {
  double value = text != nullptr ? atof(text) : 0;
  return value > 0 ? value : static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

ResourceLimits ResourceLimits::FromEnvironment() {
  ResourceLimits limits;
  limits.cpus = ParseCpus(getenv("CAISSON_CPUS"));
  const char* memory = getenv("CAISSON_MEMORY_BYTES");
  limits.memory_bytes = memory != nullptr ? ParseInt<uint64_t>(memory).value_or(0) : 0;
  if (limits.memory_bytes == 0) {
    struct sysinfo info{};
    sysinfo(&info);
    limits.memory_bytes = info.totalram * info.mem_unit;
  }
  return limits;
}

Result<boost::json::object> Resources::Metrics() {
  auto processes = ReadProcesses();
  if (processes.empty()) return Fail(Code::kInternal, "cannot read /proc");
  struct statvfs disk{};
  if (statvfs("/", &disk) != 0) return FailErrno("cannot read the disk's usage");
  uint64_t ticks = 0;
  for (const ProcStat& process : processes) ticks += process.cpu_ticks;
  auto now = std::chrono::steady_clock::now();
  double cpu_pct = 0;
  if (sampled_ != std::chrono::steady_clock::time_point{}) {
    double seconds = std::chrono::duration<double>(now - sampled_).count();
    double used = static_cast<double>(ticks - std::min(ticks, sampled_ticks_)) /
                  static_cast<double>(sysconf(_SC_CLK_TCK));
    if (seconds > 0) cpu_pct = std::clamp(used / seconds / limits_.cpus * 100, 0.0, 100.0);
  }
  sampled_ = now;
  sampled_ticks_ = ticks;
  uint64_t used = std::min(UsedMemory(processes), limits_.memory_bytes);
  uint64_t block = disk.f_frsize;
  return boost::json::object{
      {"ts", UnixSeconds(Now())},
      {"cpu_count", static_cast<int64_t>(std::ceil(limits_.cpus))},
      {"cpu_used_pct", std::round(cpu_pct * 100) / 100},
      {"mem_total", limits_.memory_bytes},
      {"mem_used", used},
      {"mem_cache", CachedMemory()},
      {"mem_total_mib", limits_.memory_bytes >> 20},
      {"mem_used_mib", used >> 20},
      {"disk_used", (disk.f_blocks - disk.f_bfree) * block},
      {"disk_total", disk.f_blocks * block},
  };
}

}  // namespace caisson::envd

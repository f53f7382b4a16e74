// What /proc tells about the processes of this pid namespace.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace caisson::envd {

struct ProcStat {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  uint64_t cpu_ticks = 0;  // its own and that of its waited-for children
  uint64_t rss_bytes = 0;
};

// Parses the text of /proc/PID/stat; a command name may hold spaces and parentheses.
std::optional<ProcStat> ParseProcStat(std::string_view text);

// Every process that can be seen now.
std::vector<ProcStat> ReadProcesses();

// Kills `root`, its session and all descendants. The tree is stopped before it is killed, so that
// it cannot fork away from under the walk. `root_alive` false: `root` was reaped already, and only
// the rest of its session is left to find.
void KillTree(pid_t root, bool root_alive);

}  // namespace caisson::envd

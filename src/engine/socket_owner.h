// Which process of a sandbox has a socket with a given local port. A best effort: by the time one
// looks, the socket may be closed and its process gone.
#pragma once

#include <time.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace caisson::engine {

struct SocketOwner {
  int pid = 0;          // as the sandbox sees it
  std::string command;  // its name
};

// What this thread has computed: a busy machine makes the search longer, not more expensive.
struct ThreadClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<ThreadClock>;
  static constexpr bool is_steady = true;
  static time_point now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }
};

// `init`: a process in the sandbox's network namespace; `processes`: where to look. Host pids both.
// Gives up at the deadline: how many sockets, processes and descriptors there are to look through
// is the sandbox's choice.
std::optional<SocketOwner> FindSocketOwner(int init, const std::vector<int>& processes,
                                           int protocol, int port,
                                           ThreadClock::time_point deadline);

}  // namespace caisson::engine

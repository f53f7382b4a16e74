// Which process of a sandbox has a socket with a given local port. A best effort: by the time one
// looks, the socket may be closed and its process gone.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace caisson::engine {

struct SocketOwner {
  int pid = 0;          // as the sandbox sees it
  std::string command;  // its name
};
// `init`: a process in the sandbox's network namespace; `processes`: where to look. Host pids both.
std::optional<SocketOwner> FindSocketOwner(int init, const std::vector<int>& processes,
                                           int protocol, int port);

}  // namespace caisson::engine

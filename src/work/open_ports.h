// Which TCP ports are listened on in a sandbox.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "work/sandboxes.h"

namespace caisson::work {

struct OpenPort {
  uint16_t port = 0;
  std::string process;  // its name, "" if that is not known
  bool operator==(const OpenPort&) const = default;
};

// Asks the kernel inside, without waking or using the sandbox. Those of this server itself are left
// out. By number. kFailedPrecondition: it does not run.
Task<Result<std::vector<OpenPort>>> FindOpenPorts(Sandboxes& sandboxes, SandboxRow sandbox);

// What the sandbox said to that. SECURITY: it may say anything.
std::vector<OpenPort> ParseOpenPorts(std::string_view text);

}  // namespace caisson::work

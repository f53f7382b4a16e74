// For tests: the real caisson-envd, started as the engine does it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"

namespace caisson::envd {

struct ProgramOptions {
  std::string config = "{}";
  std::map<std::string, std::string> environment;
  int namespaces = 0;                 // CLONE_NEW... flags
  std::function<void()> before_exec;  // runs in the child; only simple things
};

class Program {
 public:
  // Starts the program with the boot descriptor; does not wait for its answer.
  explicit Program(ProgramOptions options);
  ~Program();  // kills it

  pid_t pid() const { return pid_; }
  // What it wrote to the boot descriptor until it closed it: "R", or "E" and a sentence.
  std::string Answer();
  // Its exit code after it ended; -1 for a signal.
  int WaitForExit();
  // From /proc/PID/status, in bytes.
  size_t ResidentBytes() const;

  static std::string File();

 private:
  pid_t pid_ = -1;
  UniqueFd boot_;
};

// A port that was free a moment ago.
uint16_t FreePort();

}  // namespace caisson::envd

// An errand: a child process that does one small thing while its parent goes on, and says by a pipe
// how it went. There is no exit status to ask for: launchers ignore SIGCHLD.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

class Errand {
 public:
  // `work` runs in the child; what it returns is what Wait() tells. Only from a process with one
  // thread. The child dies with its parent.
  static Result<Errand> Send(const std::function<std::string()>& work);
  Errand(Errand&& other) noexcept;
  Errand& operator=(Errand&&) = delete;
  // Waits for it.
  ~Errand();

  // "" also if it died before it could say anything.
  std::string Wait();

 private:
  Errand() = default;
  int pid_ = -1;
  UniqueFd reader_;
};

}  // namespace caisson::engine

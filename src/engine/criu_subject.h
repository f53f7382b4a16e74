// A process tree like a sandbox's, made to be saved: for TryCriu() and the tests of criu.h.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace caisson::engine {

inline constexpr uid_t kSubjectIds = 65536;

// Makes `path` (an existing folder) a root for one: owned by its user ids, mounted on itself so
// that it can become a root, with folders for the mounts inside.
Status MakeSubjectRoot(const std::string& path, uid_t first_id);

// The first process, in user, pid, mount, network, uts and ipc namespaces of its own, with proc,
// devpts and its loopback. Killed, and all below it, with the object.
class Subject {
 public:
  // Runs `arguments`, a static program inside `root`, with a listening TCP socket as its descriptor
  // 0 and no other. The port is 7000.
  static Result<Subject> Start(const std::string& root, uid_t first_id,
                               const std::vector<std::string>& arguments);
  // Takes over one that was continued.
  explicit Subject(pid_t pid) : pid_(pid) {}
  Subject(Subject&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  Subject& operator=(Subject&&) = delete;
  ~Subject();

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// What RestorePlan::set_up_network needs to do for one: its loopback.
Status SetUpSubjectNetwork(int pid);

}  // namespace caisson::engine

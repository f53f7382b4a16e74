// The system calls a sandbox may make: an allow-list, compiled once and installed in every sandbox.
//
// What is not on the list answers ENOSYS, so that libraries fall back to what they did on older
// kernels; what is known and forbidden answers EPERM. The filter is installed with CAP_SYS_ADMIN of
// the sandbox's own user namespace and not with no_new_privs, because sudo must work inside.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "base/error.h"

namespace caisson::engine {

class SeccompFilter {
 public:
  // `nesting`: containers inside, so namespaces and mounts are allowed.
  static Result<SeccompFilter> Compile(bool nesting);

  // From now on, for this process and all it starts.
  Status Install() const;
  size_t instructions() const { return names_.size() + arguments_.size() + sockets_.size(); }

 private:
  using Program = std::vector<sock_filter>;

  // Of several programs the kernel obeys the strictest answer. The first goes by the number of the
  // call, which lets the kernel cache most answers; the others look at arguments of a few calls.
  Program names_;
  Program arguments_;
  Program sockets_;  // socket_filter.h
};

}  // namespace caisson::engine

// From root to nobody: what the server process gives up before it reads its first byte.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.h"

namespace caisson::cli {

struct ServerUser {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home = "/";
};

// Of the setting `user`. Fails if there is no such user, or if it is root.
Result<ServerUser> FindServerUser(const std::string& name);

// Where DropPrivileges() makes its `writable_dir` appear.
inline constexpr const char* kWritableDir = "/run/caisson";

// Becomes `user` for good: no capabilities, no way to gain any, not traceable. The file system
// turns read-only for this process, except `writable_dir`, which is found at kWritableDir from now
// on (the user need not be able to reach its real place, for example in somebody's home); "" = no
// directory. Call it while there is only one thread.
Status DropPrivileges(const ServerUser& user, const std::string& writable_dir);

// Lets this process open as many files as `wanted`, or as many as the kernel allows.
void RaiseFileLimit(uint64_t wanted);

}  // namespace caisson::cli

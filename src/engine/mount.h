// The kernel's descriptor-based mount calls. A mount made here is attached nowhere: it exists as a
// descriptor until the sandbox moves it into its own tree, and vanishes when the last one closes.
#pragma once

#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

// SECURITY: of a mount through which the engine reaches what a guest has written: no program there
// gains rights, and no device is one. What is seen inside goes by the sandbox's own root.
extern const unsigned kOnlyData;  // MOUNT_ATTR_*

// A file system being configured (fsopen(2)). Errors carry the kernel's own explanation.
class FileSystem {
 public:
  static Result<FileSystem> Open(const char* type);

  Status SetFlag(const char* key);
  Status SetString(const char* key, const std::string& value);
  Status SetFd(const char* key, int fd);
  // Creates the superblock and returns the detached mount. `attributes`: MOUNT_ATTR_*.
  Result<UniqueFd> Mount(unsigned attributes);

 private:
  explicit FileSystem(UniqueFd fd, const char* type) : fd_(std::move(fd)), type_(type) {}
  tl::unexpected<Error> Failed(const char* doing);

  UniqueFd fd_;
  const char* type_;
};

// From now on nothing this process mounts is seen by others.
Status TakeMountNamespace();

// A detached copy of the mount at `path` below `dir` (open_tree(2)): a bind mount to be placed
// later. An empty path copies the mount of `dir` itself.
Result<UniqueFd> CloneMount(int dir, const char* path);
// Everything below shows its owners through the map of `user_namespace`.
Status MapOwners(int mount, int user_namespace);
Status MakeReadOnly(int mount);
// Attaches a detached mount on `target`, relative to the current directory.
Status Attach(int mount, const char* target);

}  // namespace caisson::engine

// What the doctor tries for real. Each leaves nothing behind. Internal to doctor*.cc.
#pragma once

#include <string>

#include "base/config.h"
#include "base/error.h"

namespace caisson::engine {

// All namespaces of a sandbox at once, with a uid range mapped.
Status TryNamespaces(const Config& config);
// A process that is born in a new cgroup of the v2 tree, and killed through it.
Status TryCgroup();
// The filter every sandbox gets.
Status TrySeccomp(const Config& config);

// A folder for trials on the file system of the data directory; removed with the object.
class TrialFolder {
 public:
  // In `data_dir`, or in the nearest folder above it that exists.
  static Result<TrialFolder> Make(const std::string& data_dir);
  TrialFolder(TrialFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TrialFolder& operator=(TrialFolder&&) = delete;
  ~TrialFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TrialFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// A disk of a sandbox: an ext4 image on a loop device.
Status TryDisk(const TrialFolder& folder);
// A root of a sandbox: an overlay of a folder and such a disk, both with mapped owners.
Status TryRoot(const Config& config, const TrialFolder& folder);

}  // namespace caisson::engine

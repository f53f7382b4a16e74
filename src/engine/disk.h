// The disk of a sandbox: a sparse image file with an ext4 file system of the size of its limit, on
// a loop device that frees itself, mounted nowhere but in a descriptor. It holds upper/ and work/
// of the sandbox's overlay, so the limit holds by construction.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

inline constexpr const char* kBlankDir = "blank";
inline constexpr const char* kShelvesDir = "disks";
inline constexpr const char* kShelfMount = "disk";  // an empty directory

// Where image files live. Binding a loop device makes the kernel sync the image to the host's disk,
// which takes milliseconds, and more when the disk is busy; and once its blocks are allocated, its
// removal is as slow. So images are made through an overlay whose only purpose is its option
// `volatile`: there a sync does nothing. The files themselves are in disks/<name>/upper.
class Shelf {
 public:
  // For a new engine process: a new shelf, mounted at kShelfMount in this mount namespace. Where
  // the data directory cannot carry an overlay it is a plain directory, and slower.
  static Result<Shelf> Mount();

  // For a new image.
  std::string ImagePath(const std::string& id) const;
  // Of one that exists, on whatever shelf.
  std::optional<std::string> FindImage(const std::string& id) const;
  // The same, as it lies on the host's disk: through the shelf a sync does nothing, and blocks
  // cannot be shared with a copy.
  std::optional<std::string> FindFile(const std::string& id) const;
  // Returns when the image is on the host's disk.
  Status SyncImage(const std::string& id) const;
  // Makes the image and the file system in it larger, while nobody uses it: a crash leaves the one
  // that was there or the new one. `sync`: returns when it is on the host's disk.
  Status GrowImage(const std::string& id, int64_t bytes, bool sync,
                   std::chrono::milliseconds timeout) const;
  // Removes the image of a sandbox, wherever it is. Missing is success.
  Status RemoveImage(const std::string& id) const;
  // Removes the shelves of earlier engine processes that hold nothing any more.
  void RemoveEmpty();

 private:
  // Where a path of FindImage() lies on the host's disk.
  std::string OnHost(std::string path) const;

  std::string name_;
  std::vector<std::string> earlier_;
};

// An empty file system, kept in memory as the few pieces of it that are not zeros.
class BlankImage {
 public:
  BlankImage(BlankImage&& other) noexcept;
  BlankImage& operator=(BlankImage&&) = delete;
  ~BlankImage();

  static Result<BlankImage> Load(const std::string& path);
  // Writes a sparse copy of it.
  Status CopyTo(int fd) const;
  // Begins to read from `device`, which holds a copy, what mounting it will ask for bit by bit.
  void Prefetch(int device) const;

 private:
  struct Piece {
    off_t offset;
    size_t size;
  };
  BlankImage() = default;

  void* memory_ = nullptr;
  size_t size_ = 0;
  std::vector<Piece> pieces_;
};

// Blank images by size. The file blank/<bytes>.ext4 is made by mkfs.ext4 when a size is asked for
// the first time, and then shared by all launchers.
class BlankImages {
 public:
  Result<const BlankImage*> Get(int64_t bytes);

 private:
  std::map<int64_t, BlankImage> loaded_;
};

// Of a mounted disk that nobody wants any more, by a directory of it: what was written to it and is
// still in memory stays there. Some microseconds; best effort.
void Discard(int root);
// What an image takes of the host's disk; it has holes.
int64_t AllocatedBytes(const std::string& path);
// What a copy of it takes: nothing where the host's file system shares blocks.
int64_t BytesOfCopy(const std::string& path);
// kResourceExhausted if so much more would leave less than `keep_free` of the host's disk.
Status CheckRoom(int64_t bytes, int64_t keep_free);

// Owns the image file: unless Keep() was called, the destructor removes it.
class Disk {
 public:
  Disk() = default;
  Disk(Disk&& other) noexcept;
  Disk& operator=(Disk&& other) noexcept;
  ~Disk();

  // The image on its loop device, not yet mounted. `label`: a name for the device, by which
  // OpenInUse() finds it again.
  static Result<Disk> Create(const BlankImage& blank, const std::string& path,
                             const std::string& label = {});
  // An image that exists already, of a sandbox that was paused. Never removed by the destructor.
  static Result<Disk> Open(const std::string& path, const std::string& label);
  Status Mount();
  // The root directory of a disk that is in use, made by an earlier process; `loop` is its device.
  // kNotFound when that device has another label by now.
  static Result<UniqueFd> OpenInUse(const std::string& label, int loop);

  // After Mount(): detached. When this and every mount made from it is gone, so is the loop device.
  int mount() const { return mount_.get(); }
  void CloseMount() { mount_.Reset(); }
  int loop() const { return loop_; }
  // Its root directory: keeps the disk in use as long as it is open.
  Result<UniqueFd> OpenRoot() const;
  void Keep() { path_.clear(); }

 private:
  std::string path_;  // "" = holds nothing
  UniqueFd mount_;
  int loop_ = -1;
  UniqueFd device_;  // keeps the loop device until it is mounted
};

}  // namespace caisson::engine

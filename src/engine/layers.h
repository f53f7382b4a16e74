// Layers: disk images that no sandbox writes to any more, layers/<digest>.img. A snapshot's disk is
// one; sandboxes made from it have it below their own disk, and so do their snapshots in turn.
//
// A layer is kept as long as a saved state or a living sandbox names it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace caisson::engine {

inline constexpr const char* kLayersDir = "layers";

// Held while layers are chosen until they are written down: nothing is collected meanwhile.
class LayersInUse {
 public:
  static Result<LayersInUse> Hold();

 private:
  explicit LayersInUse(UniqueFd fd) : lock_(std::move(fd)) {}
  UniqueFd lock_;
};

// A copy of a disk image that nobody writes to now, only the pieces with data. Under a name of its
// own until Finish() gives it its final one. LayersInUse must be held from Take() until the layer
// is written down.
class LayerCopy {
 public:
  static Result<LayerCopy> Take(const std::string& image_path);
  LayerCopy(LayerCopy&& other) noexcept;
  LayerCopy& operator=(LayerCopy&&) = delete;
  ~LayerCopy();

  // Names it after its content (SHA-256 of the blocks that are not zero, and where they are) and
  // returns that name.
  Result<std::string> Finish(bool sync, const std::string& boot_id);
  int64_t bytes() const { return bytes_; }  // allocated

 private:
  LayerCopy() = default;
  std::string path_;
  UniqueFd fd_;
  int64_t bytes_ = 0;
};

// Layers mounted for reading, attached nowhere. One per launcher; remembers what it has mounted
// during one job.
class LayerMounts {
 public:
  // A detached mount; valid until Forget(). kDataLoss: it is missing, or not what its name says.
  // Its content is read only once per boot of the host, and again if the file is not the same.
  Result<int> Get(const std::string& layer, const std::string& boot_id);
  // Lets go of all: a layer that is removed must not be kept by one who may never use it again.
  void Forget() { mounts_.clear(); }

 private:
  std::map<std::string, UniqueFd> mounts_;
  std::map<std::string, std::string> checked_;  // what each was when it was compared
};

// Compares all layers with their names that nobody has compared since the host's boot, so that
// nobody has to wait for it later. What is damaged is logged. Takes as long as reading them.
void CheckLayers(const std::string& boot_id);

// Removes what nobody needs: `needed`, called when nobody can choose layers any more, names those
// of everything saved and living, or nothing if that cannot be told: then all are kept. Does
// nothing while somebody holds LayersInUse.
void CollectLayers(const std::function<std::optional<std::vector<std::string>>()>& needed);

}  // namespace caisson::engine

// What is written beside a saved sandbox so that it can be continued, or refused with a reason: the
// file saved/<id>/manifest.json. It is written last, so a directory without one is half made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"

namespace caisson::engine {

// Of the manifest and of what it describes; a greater number is refused. 2: large areas of memory
// may lie beside CRIU's files (large_areas.h). 3: so may deleted files (deleted_files.h).
inline constexpr int64_t kManifestFormat = 3;

// A mount whose source is a file of the host: where it is inside, and what it shows (child.h).
struct HostMount {
  std::string point;
  std::string source;
};

struct Manifest {
  Saved saved;
  bool snapshot = false;     // else a paused sandbox, whose disk lies on a shelf
  std::string sandbox_id;    // whose state it is
  std::string root_dir;      // of the template, without links
  std::string envd;          // the program that runs inside, relative to the engine's directory
  std::string boot_id;       // as the sandbox sees it
  std::string host_boot_id;  // of the host when it was saved
  std::string kernel;        // release of the host's kernel, for people
  std::string criu;          // version, for people
  int64_t disk_limit_bytes = 0;
  int loop =
      -1;  // the loop device of a paused sandbox's disk: must be gone before it is used again
  std::vector<std::string> layers;  // disks below its own, bottom first; a snapshot's own is last
  std::vector<HostMount> mounts;
  // Checksums of the files of memory/, by name (FileChecksum()).
  std::map<std::string, std::string> files;
};

std::string SerializeManifest(const Manifest& manifest);
// kDataLoss: it is damaged; kFailedPrecondition: another version of Caisson wrote it.
Result<Manifest> ParseManifest(std::string_view text);

}  // namespace caisson::engine

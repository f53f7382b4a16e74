// What is written down about a sandbox so that a later engine process can find it again, or remove
// what is left of it: sandboxes/<id>/ with state.json and, once envd answered, `ready`.
//
// All paths are relative: the engine's processes have <data_dir>/engine as current directory.
// SECURITY: that way nobody who may rename things above it can redirect what root writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"

namespace caisson::engine {

inline constexpr const char* kSandboxesDir = "sandboxes";

struct Record {
  std::string id;
  std::string boot_id;      // of the host: process ids of an earlier boot mean nothing
  int pid = 0;              // envd
  uint64_t start_time = 0;  // of that process (field 22 of /proc/<pid>/stat): pids come back
  int slot = 0;
  int loop = 0;  // the loop device of its disk
  Network network = Network::kNone;
  Limits limits;
  Time created_at;
};

// sandboxes/<id>; owns it: unless Keep() was called, the destructor removes it and all in it.
class RecordDir {
 public:
  RecordDir() = default;
  RecordDir(RecordDir&& other) noexcept : id_(std::exchange(other.id_, {})) {}
  RecordDir& operator=(RecordDir&& other) noexcept;
  ~RecordDir();

  // kAlreadyExists if it is there: ids are never used twice.
  static Result<RecordDir> Create(const std::string& id);
  // One made by an earlier process, or nothing at all: to remove it.
  static RecordDir Leftover(const std::string& id);
  // Every id that has a directory.
  static Result<std::vector<std::string>> List();

  // Replaces the file in one step. Not forced to the disk: after a power failure no sandbox lives.
  Status Write(const Record& record) const;
  Result<Record> Read() const;
  Status MarkReady() const;
  bool ready() const;

  Status Remove();
  void Keep() { id_.clear(); }

 private:
  explicit RecordDir(std::string id) : id_(std::move(id)) {}
  std::string path(const char* name) const;

  std::string id_;  // "" = holds nothing
};

// The host's boot id.
Result<std::string> ReadBootId();
// When the process was started, in clock ticks since boot; kNotFound if there is none.
Result<uint64_t> ReadStartTime(int pid);

}  // namespace caisson::engine

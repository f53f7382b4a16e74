// What is written down about a sandbox so that a later engine process can find it again, or remove
// what is left of it: sandboxes/<id>.building, which becomes <id>.json once envd has answered.
//
// All paths are relative: the engine's processes have <data_dir>/engine as current directory.
// SECURITY: that way nobody who may rename things above it can redirect what root writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
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
  Egress egress;
  Limits limits;
  Time created_at;
  // What it takes to save it.
  std::string root_dir;             // of its template, without links
  std::string envd;                 // the program that is its envd
  std::string inside_boot_id;       // the boot id it sees
  std::vector<std::string> layers;  // disks below its own, bottom first
  std::string why_frozen;           // it is paused, in memory, for this reason; "" = it runs
};

// The file of one sandbox. Owns it: unless Keep() was called, the destructor removes it.
class RecordFile {
 public:
  RecordFile() = default;
  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&& other) noexcept;
  ~RecordFile();

  // kAlreadyExists if there is one: ids are never used twice.
  static Result<RecordFile> Create(const std::string& id);
  // One made by an earlier process, or nothing at all: to remove it.
  static RecordFile Leftover(const std::string& id);
  // The file that the sandbox sees as its boot id lies beside the record and goes with it.
  static std::string BootIdPath(const std::string& id);
  // Every id that has one.
  static Result<std::vector<std::string>> List();

  // After Create(), once. Not forced to the disk: after a power failure no sandbox lives.
  Status Write(const Record& record) const;
  Status MarkReady() const;
  Result<Record> Read() const;
  bool ready() const;

  Status Remove();
  void Keep();

 private:
  explicit RecordFile(std::string id) : id_(std::move(id)) {}
  std::string Path(const char* suffix) const;

  std::string id_;  // "" = holds nothing
  UniqueFd fd_;     // after Create()
};

// Of a sandbox that is ready, whoever made it; kNotFound if there is none.
Result<Record> ReadRecord(const std::string& id);
std::string RecordPath(const std::string& id);
// Waits until nobody has it locked: the CRIU of a launcher that died may still work on the sandbox.
Status AwaitUnlocked(const std::string& id, std::chrono::milliseconds timeout);
// Replaces it.
Status RewriteRecord(const Record& record);

// The host's boot id.
Result<std::string> ReadBootId();
// When the process was started, in clock ticks since boot; kNotFound if there is none.
Result<uint64_t> ReadStartTime(int pid);

}  // namespace caisson::engine

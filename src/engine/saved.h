// Where saved sandboxes lie: saved/<id>/ with manifest.json and, if its memory was saved, memory/.
// Disks lie elsewhere: of a paused sandbox on its shelf (disk.h), of a snapshot in layers/.
//
// A directory is made under a name of its own and gets its final one when it is complete: whoever
// crashes in between leaves nothing that could be taken for a saved sandbox.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "engine/manifest.h"

namespace caisson::engine {

inline constexpr const char* kSavedDir = "saved";

// A saved state being written. Unless Commit() succeeded, the destructor removes it.
class SavedDraft {
 public:
  static Result<SavedDraft> Begin(const std::string& id);
  SavedDraft(SavedDraft&& other) noexcept;
  SavedDraft& operator=(SavedDraft&&) = delete;
  ~SavedDraft();

  // memory/, open; empty at first.
  int memory() const { return memory_.get(); }
  // Empties it again.
  Status Clear();
  // Fills in the manifest's files and sizes of what is in memory/, and writes it. `sync`: all of
  // it is on the host's disk when this returns. From then on the state exists.
  Status Commit(Manifest manifest, bool sync);

 private:
  Status PackImages();
  SavedDraft(std::string id, std::string path) : id_(std::move(id)), path_(std::move(path)) {}

  std::string id_;
  std::string path_;  // "" = committed
  UniqueFd memory_;
};

// kNotFound: there is none; else what ParseManifest() says, in a sentence with its id.
Result<Manifest> ReadSaved(const std::string& id);
bool SavedExists(const std::string& id);
// Everything that is saved. What is damaged has no manifest; it is left alone, because a person may
// want to look, and resuming it says what is wrong.
struct SavedEntry {
  std::string id;
  std::optional<Manifest> manifest;
};
std::vector<SavedEntry> ListSavedEntries();
// Missing is success. It is gone at once; its space is free after EmptyTrash().
Status RemoveSaved(const std::string& id);
// Removes what this process has thrown away. Unlinking takes milliseconds, so it is done when
// nobody waits.
void EmptyTrash();
// Notes that this saved state is being continued on its own disk. True: it was tried before and did
// not come to an end.
Result<bool> MarkResuming(const std::string& id);
// Removes drafts and copies left by processes that were killed. `all`: nobody else is at work.
void RemoveLeftovers(bool all = false);

// The memory/ of a saved state, to be restored: a directory of links, where files can be replaced
// without changing what is saved. Vanishes with the object.
class MemoryImages {
 public:
  static Result<MemoryImages> Open(const Manifest& manifest);
  MemoryImages(MemoryImages&& other) noexcept;
  MemoryImages& operator=(MemoryImages&&) = delete;
  ~MemoryImages();
  int fd() const { return fd_.get(); }

 private:
  MemoryImages() = default;
  UniqueFd fd_;
  std::string path_;  // to remove
};

// Compares the files of memory/ with their checksums; kDataLoss names the first that differs. The
// pages of memory and of deleted files, which may be many, are read only if `pages`.
Status VerifyMemory(const Manifest& manifest, bool pages);

}  // namespace caisson::engine

// Watching a directory, or a whole tree, with inotify.
#pragma once

#include <sys/inotify.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "envd/entry.h"

namespace caisson::envd {

enum class ChangeType { kCreate = 1, kWrite = 2, kRemove = 3, kRename = 4, kChmod = 5 };

// The message FilesystemEvent.
struct Change {
  std::string name;  // relative to the watched directory
  ChangeType type = ChangeType::kCreate;
  std::optional<Entry> entry;  // on create, write and chmod, if asked for and still there
};
boost::json::object ToJson(const Change& change, bool legacy);

struct WatchOptions {
  std::string path;
  bool recursive = false;
  bool include_entry = false;
  bool allow_network_mounts = false;
  size_t max_directories = 65'536;
};

// One inotify instance. Events are read in order; a directory that appears under a recursive watch
// is watched from then on, and what was already made inside it is reported, too.
class Watcher {
 public:
  // The watch is armed when this returns. kNotFound, kInvalidArgument (not a directory, or on a
  // network file system), kResourceExhausted (the kernel's or our limits).
  static Result<std::unique_ptr<Watcher>> Create(asio::any_io_executor executor,
                                                 WatchOptions options);

  // Waits for changes; an empty list when `until` passes first. kInternal when the kernel had to
  // drop events: then the picture is incomplete and the watch must be made anew.
  Task<Result<std::vector<Change>>> Read(std::chrono::steady_clock::time_point until);
  // What is there now, without waiting.
  Result<std::vector<Change>> ReadNow();
  // Ends the watch; a Read() under way fails with kCanceled.
  void Close();

 private:
  Watcher(asio::any_io_executor executor, int fd, WatchOptions options);

  // `relative` is "" for the watched directory itself. A directory that is gone is no error.
  Status AddDirectory(const std::string& relative);
  // Watches what is below `relative`; with `report`, also tells what it finds as created.
  Status AddBelow(const std::string& relative, std::vector<Change>* report);
  Status Handle(const inotify_event& event, std::string_view name, std::vector<Change>& changes);
  void HandleSelf(const inotify_event& event, const std::string& directory,
                  std::vector<Change>& changes);
  Status HandleDirectory(const inotify_event& event, const std::string& relative,
                         std::vector<Change>& changes);
  void Emit(std::vector<Change>& changes, std::string relative, ChangeType type) const;
  void MoveDirectories(const std::string& from, const std::string& to);
  void ForgetDirectories(const std::string& relative);
  // After a read that emptied the queue: nothing from before it can still be on its way.
  void ForgetEarlierRounds();
  std::string FullPath(const std::string& relative) const;

  WatchOptions options_;
  asio::posix::stream_descriptor inotify_;
  asio::steady_timer deadline_;
  std::map<int, std::string> directories_;  // watch descriptor -> relative path
  // A directory that was moved away: if it comes back under another name before the queue is
  // empty, it keeps its watches.
  struct Moved {
    std::string from;
    uint64_t round = 0;
  };
  std::map<uint32_t, Moved> moved_;  // by the cookie that both events carry
  // Names that AddBelow() reported before their own create event was read, and in which round.
  std::map<std::string, uint64_t> reported_;
  uint64_t round_ = 0;  // counts the reads
};

}  // namespace caisson::envd

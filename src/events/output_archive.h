// Old output of commands, compressed in files beside the database. Its events stay in the log, with
// everything but the text: whoever reads the log gets the text put back and notices nothing.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "store/event_row.h"

namespace caisson::events {

// Its functions may be called from any thread, and block on files: call them in jobs of the store.
class OutputArchive {
 public:
  using Event = store::EventRow;

  // "" = there is no place for files, and nothing is archived.
  explicit OutputArchive(std::string directory) : directory_(std::move(directory)) {}
  // Beside the database, if that is a file.
  static std::string DirectoryFor(const Config& config);

  bool usable() const { return !directory_.empty(); }

  // The file that holds these events, in the order of their ids; whole and on disk when its name is
  // given back. The same events make the same file again.
  Result<std::string> Write(const std::vector<Event>& events) const;
  // The data of the event once its text lies in `file`.
  static std::string WithoutText(const Event& event, const std::string& file);
  static bool IsArchived(const Event& event);
  // Puts the texts back. Of one whose file is lost the text says so.
  void Restore(std::vector<Event>& events);
  // Deletes the files of events that are all older than `oldest`.
  void DeleteBefore(int64_t oldest) const;
  // Everything up to this event is in files and was taken out of the rows: a crash can only have
  // come between the newest file and its rows.
  int64_t Settled() const;

 private:
  using Texts = std::map<int64_t, std::string>;  // the data by the id of its event
  std::shared_ptr<const Texts> Load(const std::string& file);
  Result<Texts> Read(const std::string& file) const;

  const std::string directory_;
  std::mutex mutex_;
  std::deque<std::pair<std::string, std::shared_ptr<const Texts>>> kept_;  // those read last
};

}  // namespace caisson::events

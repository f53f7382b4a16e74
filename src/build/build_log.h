// The logs of builds: lines in the database, from 0 on, without holes and without doubles over
// restarts of the server.
#pragma once

#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/config.h"
#include "build/log_lines.h"
#include "sdk/envd_client.h"
#include "store/build_rows.h"
#include "store/store.h"

namespace caisson::build {

// What one step of a build has to say. Commands are told from their first byte again when a step is
// taken up after a crash, so the lines of each source that are in the database already are left
// out. Written in the background, together; what is too much is left out: a line says so, and at
// the end of the step another one how much that was.
class LogWriter {
 public:
  ~LogWriter();  // what is left is still written
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // A line of ours.
  void Say(std::string_view text);
  // Output of a command, cut anywhere.
  void Take(sdk::Stream stream, std::string_view piece);
  // A command has ended: its last line is complete.
  void EndOfOutput();
  // All that was said is in the database when this returns.
  Task<void> Flush();
  // The last lines of output, for errors.
  std::string tail() const;

 private:
  friend class BuildLogs;
  enum Source { kStdout, kStderr, kSystem };
  static constexpr std::array<std::string_view, 3> kNames = {"stdout", "stderr", "system"};
  struct Queue;  // shared with what writes it

  LogWriter(const Config& config, const events::Redactor& redactor, std::string build_id,
            std::string phase, std::shared_ptr<Queue> queue);
  void Add(Source source, LogLine line);
  store::BuildLogRow NextRow(Source source, LogLine line);
  void Omit(Source source);
  void TellOmitted();

  const Config& config_;
  std::string build_id_, phase_;
  std::array<LogLines, 3> lines_;
  // What was there before: how many lines of output, and our own.
  std::array<int64_t, 2> known_{};
  std::multiset<std::string> known_said_;
  std::vector<std::string> tail_;
  int64_t next_ = 0;  // the number of the next line
  bool full_ = false;
  int64_t omitted_ = 0;  // lines of output since then that nobody was told of
  std::shared_ptr<Queue> queue_;
};

class BuildLogs {
 public:
  // All outlive it.
  BuildLogs(asio::any_io_executor executor, store::Store& store, const Config& config,
            const events::Redactor& redactor);
  // Waits for what is being written.
  Task<void> Stop();

  // Of one build there is one at a time. `title` is the first line: a step whose title is there
  // was begun before, and is told from there on; "" = always anew.
  Task<Result<std::unique_ptr<LogWriter>>> Open(std::string build_id, std::string phase,
                                                std::string title);

 private:
  static Task<void> Write(store::Store& store, std::shared_ptr<LogWriter::Queue> queue);

  asio::any_io_executor executor_;
  store::Store& store_;
  const Config& config_;
  const events::Redactor& redactor_;
  TaskGroup tasks_;
};

struct LogPage {
  std::vector<store::BuildLogRow> lines;  // oldest first
  bool has_more = false;                  // there are older ones
};
// The `limit` lines before number `before` (< 0: the newest), or those from number `from` on; of a
// log that was moved away, those in the directory `archive`.
Result<LogPage> LinesBefore(store::Transaction& tx, const std::string& archive,
                            const std::string& build_id, int64_t before, int64_t limit);
Result<std::vector<store::BuildLogRow>> LinesFrom(store::Transaction& tx,
                                                  const std::string& archive,
                                                  const std::string& build_id, int64_t from,
                                                  int64_t limit);

// Deletes the logs of builds that ended before `before`; each is first put into the directory
// `archive`, if that is not "", as NDJSON. How many builds there were.
Task<Result<int64_t>> DeleteOldLogs(store::Store& store, Time before, std::string archive);

}  // namespace caisson::build

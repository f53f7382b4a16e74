// Who writes the files of a build.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/config.h"
#include "base/time.h"
#include "build/file_change.h"

namespace caisson::build {

struct RunnerJob {
  std::string build_id, owner_id, project;
  std::string goal;             // what is wanted; of a further build, what shall change
  std::string failure;          // of the attempt before, when it shall be mended; "" the first time
  int64_t attempt = 1;          // to mend it is the second one, and so on
  Files files;                  // of the version or attempt before; empty of a first build
  boost::json::object options;  // of the build
  std::string sandbox_id;       // "" if the runner needs none
  std::string workspace;
  // A line for the build's log.
  std::function<void(std::string_view source, std::string_view text)> log;
};
struct RunnerResult {
  std::vector<FileChange> changes;
  std::string model;
  int64_t tokens_in = 0, tokens_out = 0;
  std::optional<Time> sleeps_until;  // it is not done, and goes on when it is called again then
};

class Runner {
 public:
  virtual ~Runner() = default;
  virtual std::string_view name() const = 0;
  // Whether it works in the build's sandbox (then that is made first).
  virtual bool needs_sandbox() const { return false; }
  // Whether it can do something about checks that failed.
  virtual bool mends() const { return true; }
  // kUnavailable and kDeadlineExceeded may be tried again; kDataLoss: the answer cannot be read.
  virtual Task<Result<RunnerResult>> Run(RunnerJob job) = 0;
};

// The files are in options.files, as the caller gave them.
std::unique_ptr<Runner> MakeFilesRunner();
// Asks a server with OpenAI's chat completions (the llm_ settings). Its answer must be one JSON
// object {"changes": [...], "note": "..."}, perhaps in a code fence, whose changes make a version
// that CheckFiles() takes; anything else is told to it and asked again, llm_attempts times. One
// question with its repetitions (429, 5xx) takes at most llm_timeout_ms.
std::unique_ptr<Runner> MakeLlmRunner(asio::any_io_executor executor, const Config& config);

}  // namespace caisson::build

// Builds, for those who ask for them: made, looked at, called off, brought back.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "build/attention.h"
#include "build/build_log.h"
#include "build/change_request.h"
#include "build/file_change.h"
#include "build/handbook.h"
#include "build/queue.h"
#include "build/readiness.h"
#include "build/timeline.h"
#include "work/platform.h"
#include "work/start_limit.h"

namespace caisson::build {

struct NewBuild {
  std::string project;
  std::string goal;       // what is wanted
  std::string runner;     // "" = the setting, or "files" if files are given
  std::string parent_id;  // the build to go on from, "" = none
  std::optional<std::vector<FileChange>> files;
  boost::json::object options;  // checked
};
struct BuildFilter {
  std::string project;              // "" = any
  std::vector<std::string> states;  // empty = any
  work::Page page;
};

// What can be looked at of a build.
struct Preview {
  // "loading", "checking", "active", "blocked", "expired", "error", "paused", "resuming",
  // "resume_failed"
  std::string state;
  bool running = false;  // its sandbox; it is this version that is shown there
  bool paused = false;
};

// A build and what can be told of it besides its row.
struct BuildView {
  store::BuildRow row;
  BuildQueue::Turn turn;
  BuildUsage usage;
  int64_t iterations = 0;  // that the tier allows; 0 = unlimited
  int64_t predicted = 0;   // its number, or the one it gets if it is the next that is ready
  Preview preview;
};

class Builds {
 public:
  // All outlive it.
  Builds(work::Platform platform, BuildQueue& queue, work::StartLimit& starts)
      : platform_(platform), queue_(queue), starts_(starts) {}

  // kFailedPrecondition: the parent is not ready, or its iterations are used up (Confirm() grants
  // more); kInvalidArgument: the files; kResourceExhausted: too many wait, or were started.
  Task<Result<BuildView>> Create(std::string owner_id, NewBuild build);
  // In all of these someone else's build is kNotFound; `owner_id` "" is an administrator.
  Task<Result<BuildView>> Get(std::string owner_id, std::string id);
  Task<Result<work::Listed<BuildView>>> List(std::string owner_id, BuildFilter filter);
  struct TimelinePart {
    TimelineColumn column;  // without its rows
    std::vector<BuildView> builds;
  };
  Task<Result<std::vector<TimelinePart>>> Timeline(std::string owner_id, TimelineFilter filter);
  // kFailedPrecondition when it is over.
  Task<Result<BuildView>> Cancel(std::string owner_id, std::string id, std::string reason);
  // Another batch of iterations.
  Task<Result<BuildView>> Confirm(std::string owner_id, std::string id);
  // A new build whose files are those of an older version of the same project.
  Task<Result<BuildView>> Rollback(std::string owner_id, std::string id, std::string version);
  // The first time somebody looks at the preview.
  Task<Result<BuildView>> MarkViewed(std::string owner_id, std::string id);

  // For those who do something with a preview.
  Attentions& attentions() { return attentions_; }

  Task<Result<Files>> GetFiles(std::string owner_id, std::string id);
  // From the build `against` ("" = the one before) to this one.
  Task<Result<std::vector<FileDifference>>> Diff(std::string owner_id, std::string id,
                                                 std::string against);
  // Whether and how the version can be put into service elsewhere.
  Task<Result<Readiness>> Assess(std::string owner_id, std::string id);
  // What was asked of it and what came of that; kNotFound of a first build, which changes nothing.
  Task<Result<ChangeRequest>> GetChangeRequest(std::string owner_id, std::string id);
  // For those who use it.
  Task<Result<Handbook>> GetHandbook(std::string owner_id, std::string id);
  Task<Result<LogPage>> Log(std::string owner_id, std::string id, int64_t before, int64_t limit);
  // For a stream: lines from number `from` on, and the state after which no more come.
  struct LogPart {
    std::vector<store::BuildLogRow> lines;
    std::string state;
    bool over = false;  // of the build and of the clean-up after it
  };
  Task<Result<LogPart>> FollowLog(std::string owner_id, std::string id, int64_t from);

 private:
  Result<store::BuildRow> Insert(store::Transaction& tx, store::BuildRow row,
                                 const NewBuild& build);
  Result<BuildView> ViewOf(store::Transaction& tx, store::BuildRow row) const;
  // Tells what is done with its preview now.
  void Watch(BuildView& view) const;
  // Runs the job that makes a build, if the user may start one now.
  Task<Result<BuildView>> Start(std::string owner_id,
                                std::function<Result<BuildView>(store::Transaction&)> job);
  // Does `change` to the caller's build and answers with what it is then.
  Task<Result<BuildView>> Change(
      std::string owner_id, std::string id,
      std::function<Status(store::Transaction&, store::BuildRow&)> change);

  work::Platform platform_;
  BuildQueue& queue_;
  work::StartLimit& starts_;
  Attentions attentions_;
};

// Without what somebody does with it at this moment.
Result<Preview> PreviewOf(store::Transaction& tx, const store::BuildRow& row);
// kNotFound also if it is somebody else's, or deleted.
Result<store::BuildRow> NeedBuild(store::Transaction& tx, const std::string& owner_id,
                                  const std::string& id);

}  // namespace caisson::build

// The previews of builds: whether they can be shown, for how long, and how they come back.
#pragma once

#include "build/build_flow.h"
#include "build/builds.h"
#include "build/embedding.h"
#include "build/removal.h"

namespace caisson::build {

struct PreviewCheck {
  std::string state;  // "active", "blocked", "error", or what the preview is otherwise
  std::string preview_url;
  Embedding embedding;
};

class Previews {
 public:
  // All outlive it.
  Previews(asio::any_io_executor executor, work::Platform platform, Workbench& workbench,
           Builds& builds, BuildFlow& flow, BuildQueue& queue, BuildLogs& logs, Removals& removals);
  // Looks after windows, the queue, old logs and what is deleted from now on.
  void Start();
  Task<void> Stop();

  // Whether the page `page_origin` may show it in a frame; what it says is the state from now on.
  Task<Result<PreviewCheck>> Check(std::string owner_id, std::string id, std::string page_origin);
  // kFailedPrecondition: it is not ready.
  Task<Result<BuildView>> Pause(std::string owner_id, std::string id);
  // The sandbox runs, its server is started anew and answers. kNotFound: the sandbox is gone
  // ("sandbox_expired"); kUnavailable: it does not answer ("sandbox_unreachable").
  Task<Result<BuildView>> Resume(std::string owner_id, std::string id);
  // It can be looked at for build_viewing_s from now on; its server runs on undisturbed.
  // kFailedPrecondition: it is not shown now.
  Task<Result<BuildView>> Extend(std::string owner_id, std::string id);

  // One round of what Start() does regularly.
  Task<Status> Care();

 private:
  Task<Result<store::BuildRow>> NeedReady(std::string owner_id, std::string id);
  // What the last try came to, for those who look later.
  Task<Status> Note(std::string id, std::string note);
  Task<Status> ResumeOnce(store::BuildRow row);
  Task<Status> CareForWindows();
  Task<Status> CleanLogs();
  Task<Status> Warn(store::BuildRow row);
  Task<Status> EndWindow(store::BuildRow row);
  static Task<void> KeepCaring(Previews& previews);

  work::Platform platform_;
  Workbench& workbench_;
  Builds& builds_;
  BuildFlow& flow_;
  BuildQueue& queue_;
  BuildLogs& logs_;
  Removals& removals_;
  int64_t rounds_ = 0;
  TaskGroup tasks_;
};

}  // namespace caisson::build

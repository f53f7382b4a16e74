// The routes of /api/v1 for builds.
#pragma once

#include <map>
#include <string>

#include "api/frame.h"
#include "api/sse_stream.h"
#include "build/builds.h"
#include "build/previews.h"

namespace caisson::api {

class BuildRoutes {
 public:
  // All outlive it. `pictures`: the directory of the screenshots.
  BuildRoutes(build::Builds& builds, build::Removals& removals, build::Previews& previews,
              const Config& config, std::string pictures)
      : builds_(builds),
        removals_(removals),
        previews_(previews),
        config_(config),
        pictures_(std::move(pictures)) {}

  // It outlives the frame.
  void Add(Frame& frame);

 private:
  using Method = Answer (BuildRoutes::*)(Call&);

  // What a rule does not accept is told like what a schema does not accept: 422.
  Handler Bind(Method method);
  void AddOne(Frame& frame, Operation operation, Method method);
  void AddReading(Frame& frame);
  void AddChanging(Frame& frame);
  void AddPreviews(Frame& frame);

  Answer Create(Call& call);
  Answer StartGeneration(Call& call);
  Answer List(Call& call);
  Answer Timeline(Call& call);
  Answer Get(Call& call);
  Answer Cancel(Call& call);
  Answer Confirm(Call& call);
  Answer Rollback(Call& call);
  Answer Delete(Call& call);
  Answer Files(Call& call);
  Answer Download(Call& call);
  Answer Readiness(Call& call);
  Answer ChangeRequest(Call& call);
  Answer Docs(Call& call);
  Answer DownloadDocs(Call& call);
  Answer Diff(Call& call);
  Answer Logs(Call& call);
  Answer StreamLogs(Call& call);
  Answer CheckPreview(Call& call);
  Answer Viewed(Call& call);
  Answer Pause(Call& call);
  Answer Resume(Call& call);
  Answer Extend(Call& call);
  Answer Screenshot(Call& call);
  Task<Status> Pump(SseStream& stream, std::string owner_id, std::string id, int64_t from);

  build::Builds& builds_;
  build::Removals& removals_;
  build::Previews& previews_;
  const Config& config_;
  std::string pictures_;
  std::map<std::string, int64_t> streams_;  // open ones by user
};

}  // namespace caisson::api

// What the steps of a build do outside of the database: its sandbox, the files in it, commands, the
// server behind the preview. Every function may be called again for the same build and does no harm
// then.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "build/file_change.h"
#include "http/message.h"
#include "sdk/envd_client.h"

namespace caisson::build {

// Where a build works.
struct Place {
  std::string owner_id, build_id;
  std::string sandbox_id;  // the row of the platform
  std::string workspace;
};

struct OpenRequest {
  std::string owner_id, build_id, project;
  std::string sandbox_id;     // taken if it still lives; "" = none
  std::string snapshot;       // else a new one is made from this, or from `template_name`
  std::string template_name;  // "" = the setting
};

// The process behind a preview.
struct ServerState {
  bool running = false;
  int exit_code = 0;
  std::string output;  // the end of it
};

// What lies in a workspace.
struct Collected {
  Files files;
  std::vector<std::string> too_large;  // paths of what no version can hold
};

class Workbench {
 public:
  virtual ~Workbench() = default;

  // A sandbox that runs, and does for build_lifetime_s from now on: `sandbox_id`, the one that was
  // made for this build before, or a new one. Its id.
  virtual Task<Result<std::string>> Open(OpenRequest request) = 0;
  // Where the files of builds are in this sandbox.
  virtual std::string WorkspaceIn(const std::string& sandbox_id) const = 0;
  // Keeps the names of all that lies in the workspace, for Undo(). Only the first time of a build.
  virtual Task<Status> Remember(Place place) = 0;
  // Deletes what came into the workspace since Remember(), and gives the paths of what left it.
  // kFailedPrecondition: it cannot be told, or not all of it could be deleted.
  virtual Task<Result<std::vector<std::string>>> Undo(Place place) = 0;
  // The workspace holds `files`; of what else is there, only `gone` is deleted.
  virtual Task<Status> Put(Place place, Files files, std::vector<std::string> gone) = 0;
  // The files of the workspace, without what package managers and tools put there; of those in
  // `before` every one that still exists, wherever it lies. kInvalidArgument: there are too many,
  // or one of `before` is too large now.
  virtual Task<Result<Collected>> Collect(Place place, Files before) = 0;
  // Any file of the sandbox. kNotFound, kOutOfRange.
  virtual Task<Result<std::string>> Read(Place place, std::string path, size_t max_bytes) = 0;
  // Starts the command, or follows the one of this name that was started before.
  virtual Task<Result<sdk::CommandResult>> Run(Place place, std::string name,
                                               sdk::Command command) = 0;
  // Ends what the build has started by Run() and still runs.
  virtual Task<Status> EndCommands(Place place) = 0;

  // Ends the server before, and whoever else has the port, and starts this one.
  virtual Task<Status> StartServer(Place place, sdk::Command command, int64_t port) = 0;
  virtual Task<Result<ServerState>> AskServer(Place place) = 0;
  // Who listens and what runs, for a log.
  virtual Task<Result<std::string>> Diagnose(Place place, int64_t port) = 0;
  // "http://3000-id.domain:8000".
  virtual Task<Result<std::string>> UrlOf(Place place, int64_t port) = 0;
  // The head of what a preview answers to GET /.
  virtual Task<Result<http::ResponseHead>> Fetch(std::string url) = 0;

  // Saves its files, once for each build; the name from which Open() makes another.
  virtual Task<Result<std::string>> Snapshot(Place place) = 0;
  // Deletes what Snapshot() has made for the build, whether or not anybody knows of it.
  virtual Task<Status> DropSnapshot(Place place) = 0;
  // Whether it is paused now: the provider may be unable to.
  virtual Task<Status> Pause(Place place) = 0;
  // It runs again, for build_lifetime_s from now on. kNotFound: it is gone.
  virtual Task<Status> Wake(Place place) = 0;
  // Nobody needs it any more. Gone already is fine.
  virtual Task<Status> Destroy(Place place, std::string reason) = 0;
};

}  // namespace caisson::build

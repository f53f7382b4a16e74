// The workbench of this server: sandboxes of the platform, previews through its own gateway.
#pragma once

#include <set>

#include "base/config.h"
#include "build/workbench.h"
#include "work/agent_loop.h"
#include "work/sandboxes.h"

namespace caisson::build {

// Where previews of local sandboxes are served.
struct PreviewSite {
  uint16_t port = 0;       // of the server
  std::string connect_to;  // "127.0.0.1:8000": how the server reaches itself
  std::string ca_file;     // of https, "" = the system's
};
// From what the server listens to.
PreviewSite MakePreviewSite(const Config& config, uint16_t port);

class LocalWorkbench final : public Workbench {
 public:
  // All outlive it.
  LocalWorkbench(const Config& config, work::Sandboxes& sandboxes, work::AgentLoop& loop,
                 PreviewSite site)
      : config_(config), sandboxes_(sandboxes), loop_(loop), site_(std::move(site)) {}

  Task<Result<std::string>> Open(OpenRequest request) override;
  Task<Status> Remember(Place place) override;
  Task<Result<std::vector<std::string>>> Undo(Place place) override;
  Task<Status> Put(Place place, Files files, std::vector<std::string> gone) override;
  Task<Result<Collected>> Collect(Place place, Files before) override;
  Task<Result<std::string>> Read(Place place, std::string path, size_t max_bytes) override;
  Task<Result<sdk::CommandResult>> Run(Place place, std::string name,
                                       sdk::Command command) override;
  Task<Status> EndCommands(Place place) override;
  Task<Status> StartServer(Place place, sdk::Command command, int64_t port) override;
  Task<Result<ServerState>> AskServer(Place place) override;
  Task<Result<std::string>> Diagnose(Place place, int64_t port) override;
  Task<Result<std::string>> UrlOf(Place place, int64_t port) override;
  Task<Result<http::ResponseHead>> Fetch(std::string url) override;
  std::string WorkspaceIn(const std::string& sandbox_id) const override;
  Task<Result<std::string>> Snapshot(Place place) override;
  Task<Status> DropSnapshot(Place place) override;
  Task<Status> Pause(Place place) override;
  Task<Status> Wake(Place place) override;
  Task<Status> Destroy(Place place, std::string reason) override;

 private:
  // The sandbox of before, if it can be made to run; "" if it cannot.
  Task<std::string> Reopen(std::string owner_id, std::string sandbox_id);
  Task<Result<sdk::EnvdClient>> Connect(Place place);
  // The paths that Collect() looks at.
  Task<Result<std::set<std::string>>> PathsIn(Place place, sdk::EnvdClient& envd,
                                              const Files& before);
  Task<Status> Extend(std::string owner_id, std::string sandbox_id);

  const Config& config_;
  work::Sandboxes& sandboxes_;
  work::AgentLoop& loop_;
  PreviewSite site_;
};

}  // namespace caisson::build

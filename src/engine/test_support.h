// For the engine's tests: an engine process with a data directory of its own, and a census of
// everything on the machine that belongs to it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/client.h"

namespace caisson::engine {

// An empty directory that vanishes with the object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Settings for a data directory: templates are those of CAISSON_TEMPLATE_DIR, or `base` of this
// machine's cache. Ends the test program with a sentence if there is none.
Config TestConfig(const TempDir& dir);
// A small sandbox of the base template.
Spec TestSpec(const Config& config);

struct CommandResult {
  int code = -1;
  std::string output;
};

class TestEngine {
 public:
  // Starts the engine and waits for its launchers; a failure is fatal to the test program.
  explicit TestEngine(Config config);
  ~TestEngine();

  const Config& config() const { return config_; }
  int pid() const { return pid_; }
  std::vector<int> launchers() const;
  // Every id this object asked for.
  const std::set<std::string>& created() const { return created_; }

  Result<Instance> Create(const Spec& spec,
                          std::chrono::milliseconds timeout = std::chrono::seconds(60));
  // All at once.
  std::vector<Result<Instance>> CreateMany(
      const std::vector<Spec>& specs, std::chrono::milliseconds timeout = std::chrono::seconds(60));
  // Asks for the sandbox, and `pause` later for its end, without waiting for it in between.
  std::pair<Status, Status> CreateThenDestroy(const Spec& spec, std::chrono::milliseconds pause);
  Status Destroy(const std::string& id);
  Status DestroyMany(const std::vector<std::string>& ids);
  Result<Saved> Pause(const std::string& id, bool memory = true);
  Result<Instance> Resume(const Spec& spec, bool memory = true);
  Result<Saved> Snapshot(const std::string& id, const std::string& snapshot_id, bool memory = true);
  Status DeleteSaved(const std::string& id);
  std::vector<Saved> ListSaved();
  Status SetLimits(const std::string& id, const Limits& limits);
  Status GrowDisk(const std::string& id, int64_t bytes);
  Result<UniqueFd> Dial(const std::string& id);
  Result<UniqueFd> Listen(const std::string& id, uint16_t port);
  Result<Usage> Measure(const std::string& id);
  std::vector<std::string> List();
  // Runs a shell command inside, as root; it has `timeout` to end.
  CommandResult Run(const std::string& id, const std::string& command,
                    std::chrono::seconds timeout = std::chrono::seconds(60),
                    const char* address = "::ffff:127.0.0.1");
  // Waits for the report that a sandbox ended by itself.
  Result<ExitReason> AwaitExit(const std::string& id, std::chrono::seconds timeout);

  // Builds and removes sandboxes until every launcher has what it opens on first use.
  void WarmUp();
  // SIGKILL to the engine's main process and its launchers; sandboxes live on.
  void KillAll();
  // The same, `moment` after it was asked to pause this sandbox.
  void PauseAndKillAll(const std::string& id, std::chrono::milliseconds moment);
  // Like the end of the server: the engine ends by itself.
  void Disconnect();

 private:
  template <class T>
  T Await(Task<T> task);

  Config config_;
  asio::io_context loop_;
  int pid_ = 0;
  std::unique_ptr<Client> client_;
  std::vector<std::pair<std::string, ExitReason>> exits_;
  std::set<std::string> created_;
};

// What exists of one server on this machine, counted by kind.
using Census = std::map<std::string, int64_t>;
Census Take(const TestEngine& engine);
// Some things vanish a little after the kernel said yes (interfaces, loop devices): takes a census
// until it equals `wanted` or `timeout` passes, and returns the last one.
Census AwaitCensus(const TestEngine& engine, const Census& wanted,
                   std::chrono::seconds timeout = std::chrono::seconds(30));
// Waits until this sandbox, which may still be in the making, has a process.
bool AwaitProcess(const std::string& id, std::chrono::seconds timeout = std::chrono::seconds(30));

}  // namespace caisson::engine

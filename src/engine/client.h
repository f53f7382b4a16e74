// The server's side of the engine: asynchronous calls to the engine process over a Unix socket.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/config.h"
#include "engine/engine.h"

namespace caisson::engine {

// What sandbox/ asks of the engine; an interface, so that its rules are tested without root.
class Engine {
 public:
  virtual ~Engine() = default;

  // Called on the loop when a sandbox ended without Destroy(). Set before Start().
  using ExitHandler = std::function<void(std::string id, ExitReason reason)>;
  virtual void OnExit(ExitHandler handler) = 0;
  // Called on the loop when a sandbox tried to reach what it may not. Set before Start().
  using BlockedHandler = std::function<void(Blocked blocked)>;
  virtual void OnBlocked(BlockedHandler handler) = 0;
  // Called on the loop when a sandbox begins or ends to stand still for the host's disk, of which
  // so much is free. Set before Start().
  using HeldHandler = std::function<void(std::string id, bool held, int64_t free_mb)>;
  virtual void OnHeld(HeldHandler handler) = 0;

  virtual Task<Result<Instance>> Create(Spec spec, std::chrono::milliseconds timeout) = 0;
  virtual Task<Status> Destroy(std::string id) = 0;
  virtual Task<Result<std::vector<UniqueFd>>> Dial(std::string id, size_t count) = 0;
  virtual Task<Result<UniqueFd>> Listen(std::string id, uint16_t port) = 0;
  // Answers for the ids that live; others are missing from the map.
  virtual Task<Result<std::vector<std::pair<std::string, Usage>>>> Measure(
      std::vector<std::string> ids) = 0;
  virtual Task<Result<std::vector<Instance>>> List() = 0;
  virtual Task<Result<Capabilities>> GetCapabilities() = 0;
  // See the Driver's calls of the same names.
  virtual Task<Result<Saved>> Pause(std::string id, bool memory,
                                    std::chrono::milliseconds timeout) = 0;
  virtual Task<Result<Instance>> Resume(Spec spec, bool memory,
                                        std::chrono::milliseconds timeout) = 0;
  virtual Task<Result<Saved>> Snapshot(std::string id, std::string snapshot_id, bool memory,
                                       std::chrono::milliseconds timeout) = 0;
  virtual Task<Status> DeleteSaved(std::string id) = 0;
  virtual Task<Result<std::optional<Saved>>> GetSaved(std::string id) = 0;
  virtual Task<Result<std::vector<Saved>>> ListSaved() = 0;  // reads all of them from the disk
  virtual Task<Status> SetLimits(std::string id, Limits limits) = 0;
  virtual Task<Status> GrowDisk(std::string id, int64_t bytes,
                                std::chrono::milliseconds timeout) = 0;
  virtual Task<Status> SetEgress(std::string id, Egress egress) = 0;
};

class Client : public Engine {
 public:
  // `socket`: one end of the SOCK_SEQPACKET pair whose other end the engine process holds.
  Client(asio::any_io_executor executor, UniqueFd socket);
  ~Client() override;

  // Called once when the engine process is gone; nothing works from then on.
  void OnEngineGone(std::function<void()> handler);
  void Start();
  // Fails what is pending and closes the socket.
  void Stop();

  void OnExit(ExitHandler handler) override;
  void OnBlocked(BlockedHandler handler) override;
  void OnHeld(HeldHandler handler) override;
  Task<Result<Instance>> Create(Spec spec, std::chrono::milliseconds timeout) override;
  Task<Status> Destroy(std::string id) override;
  Task<Result<std::vector<UniqueFd>>> Dial(std::string id, size_t count) override;
  Task<Result<UniqueFd>> Listen(std::string id, uint16_t port) override;
  Task<Result<std::vector<std::pair<std::string, Usage>>>> Measure(
      std::vector<std::string> ids) override;
  Task<Result<std::vector<Instance>>> List() override;
  Task<Result<Capabilities>> GetCapabilities() override;
  Task<Result<Saved>> Pause(std::string id, bool memory,
                            std::chrono::milliseconds timeout) override;
  Task<Result<Instance>> Resume(Spec spec, bool memory, std::chrono::milliseconds timeout) override;
  Task<Result<Saved>> Snapshot(std::string id, std::string snapshot_id, bool memory,
                               std::chrono::milliseconds timeout) override;
  Task<Status> DeleteSaved(std::string id) override;
  Task<Result<std::optional<Saved>>> GetSaved(std::string id) override;
  Task<Result<std::vector<Saved>>> ListSaved() override;
  Task<Status> SetLimits(std::string id, Limits limits) override;
  Task<Status> GrowDisk(std::string id, int64_t bytes, std::chrono::milliseconds timeout) override;
  Task<Status> SetEgress(std::string id, Egress egress) override;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

// Starts the engine process: forks (call it before any thread exists), keeps the few capabilities
// it needs, serves the returned socket until it closes, then exits; sandboxes live on. A new engine
// process with the same data directory adopts them. Blocks until the engine has probed the machine
// and is ready, or says in plain words why it cannot.
struct EngineProcess {
  int pid = 0;
  UniqueFd socket;
};
Result<EngineProcess> StartEngineProcess(const Config& config);

}  // namespace caisson::engine

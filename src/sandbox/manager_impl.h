// The inside of Manager, spread over several sources by what they do:
//   manager.cc   the face, reading, start and stop     create.cc    making a sandbox
//   change.cc    timeout and network of a living one   ending.cc    kill, end of time, exit
//   adoption.cc  finding the living at start           health.cc    is envd still there?
// Everything runs on the loop; whoever awaits looks at `Record::running` again afterwards.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sandbox/expiry.h"
#include "sandbox/idempotency.h"
#include "sandbox/manager.h"
#include "sandbox/registry.h"
#include "sandbox/sampler.h"
#include "sandbox/socket_cache.h"

namespace caisson::sandbox {

// Why a sandbox ended.
struct Ending {
  std::string reason;   // a word for the row: "request", "timeout", ...
  std::string message;  // a sentence for the timeline
  std::string level = "info";
};

store::SandboxEvent MakeEvent(const std::string& id, std::string type, std::string message,
                              StringMap fields = {}, std::string level = "info");

class Manager::Impl {
 public:
  Impl(asio::any_io_executor executor, const Config& config, engine::Engine& engine,
       store::Store& store, const TemplateCatalog& templates, std::string secret);
  ~Impl();

  Task<Status> Start();
  Task<void> Stop();

  Task<Result<Info>> Create(CreateOptions options);
  Result<std::shared_ptr<Record>> FindOwned(const std::string& key_id, const std::string& id) const;
  std::vector<Info> List(const ListFilter& filter) const;
  Task<Status> Kill(std::string key_id, std::string id);
  Task<Result<Info>> SetTimeout(std::string key_id, std::string id, std::chrono::seconds timeout,
                                bool only_extend);
  Task<Status> SetNetwork(std::string key_id, std::string id, bool allow_internet,
                          std::string as_requested_json);
  Task<Result<std::vector<Sample>>> Metrics(std::string key_id, std::string id,
                                            std::optional<Time> start, std::optional<Time> end);
  Task<Result<std::vector<store::SandboxEvent>>> Events(std::string key_id, std::string id,
                                                        store::EventQuery query);
  Task<Result<UniqueFd>> Dial(std::string id);
  void ReportUnresponsive(const std::string& id, std::string reason);

  Registry registry_;
  store::Store& store_;

 private:
  // A sandbox between the engine's first step and its place in the registry.
  struct Creation {
    std::string key_id;
    std::optional<engine::ExitReason> exited;  // envd ended before we were done
  };

  // ---- create.cc
  Task<Result<Info>> CreateOnce(CreateOptions options);
  Task<Result<Info>> CreateNow(CreateOptions options);
  // Checks everything that can be checked before the engine is asked.
  Result<store::SandboxRow> Prepare(const CreateOptions& options) const;
  Status CheckQuotas(const std::string& key_id) const;
  Result<engine::Spec> MakeSpec(const store::SandboxRow& row) const;
  // The engine's error in words for a client; the details go to the log.
  Error StartFailure(const std::string& id, const Error& error) const;
  Time NextStart();

  // ---- ending.cc
  // Takes the sandbox out of traffic at once; false if that has happened before.
  bool Detach(Record& record);
  // Destroys a detached sandbox and writes down why.
  Task<Status> Finish(std::shared_ptr<Record> record, Ending ending);
  Task<void> FinishAlone(std::shared_ptr<Record> record, Ending ending);
  // A failure is logged; the next Start() sets the row right.
  Task<void> WriteEnd(store::SandboxRow row, Ending ending);
  // Tries again and again, a bounded number of times.
  Task<void> DestroyLater(std::string id);
  void OnExpired(const std::string& id);
  void OnExit(const std::string& id, engine::ExitReason reason);

  // ---- change.cc
  // Writes a changed row of a living sandbox, and the event that tells of it.
  Task<Status> WriteChange(store::SandboxRow row, store::SandboxEvent event);

  // ---- adoption.cc
  Task<Status> Adopt();
  Task<void> DestroyOrphan(std::string id);
  Task<void> EndLost(store::SandboxRow row, Ending ending);

  // ---- health.cc
  Task<void> Probe(std::shared_ptr<Record> record, std::string reason);
  Task<Status> CheckHealth(std::shared_ptr<Record> record);

  asio::any_io_executor executor_;
  const Config config_;
  engine::Engine& engine_;
  const TemplateCatalog& templates_;
  const std::string secret_;

  std::map<std::string, Creation> creating_;
  Idempotency idempotency_;
  Expiry expiry_;
  Sampler sampler_;
  Time last_start_{};
  bool stopping_ = false;

  TaskGroup operations_;  // what must come to its end: creations, endings
  TaskGroup background_;  // what may be cut: timers, samples, probes
  SocketCache sockets_;
};

}  // namespace caisson::sandbox

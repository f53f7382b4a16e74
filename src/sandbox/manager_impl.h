// The inside of Manager, spread over several sources by what they do:
//   manager.cc   the face, reading, start and stop     create.cc    making a sandbox
//   change.cc    timeout and network of a living one   ending.cc    kill, end of time, exit
//   adoption.cc  finding the living at start           health.cc    is envd still there?
//   inspect.cc   all that is known of one              pool.cc      made before anybody asks
//   pause.cc     putting one away                      resume.cc    bringing it back
//   wake.cc      being brought back by traffic         drain.cc     pausing many, and the idle
//   snapshot.cc  copies to make others from            fork.cc      copies that run at once
// Everything runs on the loop; whoever awaits looks at `Record::running` again afterwards.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sandbox/expiry.h"
#include "sandbox/idempotency.h"
#include "sandbox/key_limiter.h"
#include "sandbox/manager.h"
#include "sandbox/pool.h"
#include "sandbox/registry.h"
#include "sandbox/sampler.h"
#include "sandbox/socket_cache.h"
#include "sandbox/turns.h"

namespace caisson::sandbox {

// Why a sandbox ended.
struct Ending {
  std::string reason;   // a word for the row: "request", "timeout", ...
  std::string message;  // a sentence for the timeline
  std::string level = "info";
};

store::SandboxEvent MakeEvent(const std::string& id, std::string type, std::string message,
                              StringMap fields = {}, std::string level = "info");

Ending EndingOf(engine::ExitReason reason);
inline const Ending kSavedStateLost{"saved_state_lost",
                                    "The sandbox ended: what was saved of it is gone", "error"};

// A failing pause at the end of its time is tried again, later and later; the last gives up memory.
inline constexpr int kMaxFailedPauses = 6;

class Manager::Impl {
 public:
  Impl(asio::any_io_executor executor, const Config& config, engine::Engine& engine,
       store::Store& store, const TemplateCatalog& templates, std::string secret, Envd& envd);
  ~Impl();

  Task<Status> Start();
  Task<void> Stop();

  Task<Result<Info>> Create(CreateOptions options);
  std::shared_ptr<Record> FindAny(const std::string& id) const;  // null: it has ended
  std::string Workspace(const std::string& id) const;
  Result<std::shared_ptr<Record>> FindOwned(const std::string& key_id, const std::string& id) const;
  std::vector<Info> List(const ListFilter& filter) const;
  Task<Status> Kill(std::string key_id, std::string id);
  Task<Result<Info>> SetTimeout(std::string key_id, std::string id, std::chrono::seconds timeout,
                                bool only_extend);
  Task<Status> SetNetwork(std::string key_id, std::string id, bool allow_internet,
                          std::string as_requested_json);
  Task<Result<Info>> SetLimits(std::string key_id, std::string id, LimitOptions limits);
  Task<Result<std::vector<Sample>>> Metrics(std::string key_id, std::string id,
                                            std::optional<Time> start, std::optional<Time> end);
  Task<Result<engine::Usage>> Usage(std::string key_id, std::string id);
  Task<Result<std::vector<store::SandboxEvent>>> Events(std::string key_id, std::string id,
                                                        store::EventQuery query);
  Task<Result<Detail>> Inspect(std::string key_id, std::string id);
  Task<Result<Diagnosis>> Diagnose(std::string key_id, std::string id);
  Task<Result<StorageUse>> Storage();
  StorageUse SavedUse() const;
  Task<Status> PauseOwned(std::string key_id, std::string id, bool memory, bool healthy);
  Task<Result<Connected>> Connect(std::string key_id, std::string id, ResumeOptions options);
  Task<Result<Info>> Resume(std::string key_id, std::string id, ResumeOptions options);
  Task<Result<store::SnapshotRow>> MakeSnapshot(std::string key_id, std::string id,
                                                SnapshotOptions options);
  std::vector<store::SnapshotRow> ListSnapshots(const SnapshotFilter& filter) const;
  Task<Status> DeleteSnapshot(std::string key_id, std::string name);
  Task<Result<std::vector<Result<Info>>>> Fork(std::string key_id, std::string id,
                                               std::chrono::seconds timeout, int64_t count);
  Task<Drained> Drain();
  void EndDrain() { draining_ = false; }
  std::shared_ptr<Record> FindSleeper(std::string_view id) const;
  Task<Status> Wake(std::string id);
  Task<Result<UniqueFd>> Dial(std::string id);
  Task<Result<UniqueFd>> Listen(std::string key_id, std::string id, uint16_t port);
  void ReportUnresponsive(const std::string& id, std::string reason);
  bool StandsStill(const std::string& id) const;

  Registry registry_;
  std::map<std::string, std::shared_ptr<Record>, std::less<>> paused_;  // or about to be
  store::Store& store_;
  const Config config_;
  KeyLimiter limiter_;
  Pool pool_;

 private:
  // A sandbox between the engine's first step and its place in the registry.
  struct Creation {
    std::string key_id;  // "" for one of the pool
    int64_t memory_mb = 0;
    std::optional<engine::ExitReason> exited = std::nullopt;  // envd ended before we were done
  };
  // Its place among those while this lives: counts against quotas, hears if envd ends early.
  class Place {
   public:
    Place(std::map<std::string, Creation>& creating, std::string id, Creation creation)
        : creating_(creating), id_(std::move(id)) {
      creating_.emplace(id_, std::move(creation));
    }
    ~Place() { creating_.erase(id_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    Creation* operator->() { return &creating_.at(id_); }

   private:
    std::map<std::string, Creation>& creating_;
    std::string id_;
  };

  // ---- create.cc
  Task<Result<Info>> CreateOnce(CreateOptions options);
  // `origin`: what it is a copy of; nothing = what options.template_name says.
  Task<Result<Info>> CreateNow(CreateOptions options, std::optional<store::SnapshotRow> origin);
  // From the pool; nothing if none fits or is well.
  Task<Result<std::optional<Info>>> CreateFromPool(store::SandboxRow row);
  Task<Result<Info>> Publish(std::shared_ptr<Record> record, Place& place, std::string from);
  // Checks everything that can be checked before the engine is asked.
  Result<store::SandboxRow> Prepare(const CreateOptions& options,
                                    const store::SnapshotRow* origin) const;
  // What a key may have; `origin`: of copies of it.
  LimitBounds BoundsOf(const std::string& key_id, const store::SnapshotRow* origin = nullptr) const;
  Status CheckTimeout(const std::string& key_id, std::chrono::seconds timeout) const;
  // Nothing may start while the server stops or is drained, nor on a full disk.
  Status CheckOpen() const;
  Status CheckDisk() const;
  Status CheckQuotas(const store::SandboxRow& row) const;
  // Of users' sandboxes, those that are being made included.
  struct Load {
    int64_t sandboxes = 0, memory_mb = 0;
  };
  Load CurrentLoad() const;
  void MakeRoom(const store::SandboxRow& row);
  // The variables of every process in it: its own win over the template's.
  static StringMap MakeEnv(const Template& from, const store::SandboxRow& row);
  Result<engine::Spec> MakeSpec(const store::SandboxRow& row) const;
  // The engine's error in words for a client; the details go to the log.
  Error StartFailure(const std::string& id, const Error& error) const;
  Time NextStart();
  Time EndAfter(std::chrono::seconds timeout) const;

  // ---- ending.cc
  // Out of traffic at once; false if that has happened before.
  bool Detach(Record& record);
  // Takes it, running or paused, out of everybody's sight; null if there is none.
  std::shared_ptr<Record> TakeOut(const std::string& id);
  // Destroys a sandbox that was taken out and writes down why.
  Task<Status> Finish(std::shared_ptr<Record> record, Ending ending);
  Task<void> FinishAlone(std::shared_ptr<Record> record, Ending ending);
  // A failure is logged; the next Start() sets the row right.
  Task<void> WriteEnd(store::SandboxRow row, Ending ending);
  Task<void> DestroyLater(std::string id);  // tries again, a bounded number of times
  // At once, later again if that fails; with `saved` what is saved, too.
  Task<void> DestroyNow(std::string id, bool saved = false);
  // Destroys it, and removes what is saved of it.
  Task<Status> Erase(std::string id, bool saved);
  void OnExpired(const std::string& id);
  void OnClockSet(const std::string& id, std::chrono::nanoseconds by);
  Task<void> WriteClockSet(store::SandboxRow row, store::SandboxEvent event);
  void OnExit(const std::string& id, engine::ExitReason reason);

  // ---- pool.cc
  // Fills it and looks after it until canceled.
  Task<void> KeepPool();
  bool HasRoomForPool(const std::string& template_id) const;
  Task<Status> FillPool(std::string template_id);
  Task<void> CheckPool();
  void Discard(std::shared_ptr<Record> record);
  // Null if none fits.
  std::shared_ptr<Record> TakeReady(const store::SandboxRow& row);
  // Tells its envd what differs from what it was started with.
  Task<Status> Introduce(std::shared_ptr<Record> ready, store::SandboxRow row);

  // ---- change.cc
  Task<Result<Info>> SetLimitsNow(std::string id, LimitOptions limits);
  // All of what `wanted` says instead of `before`, or nothing.
  Task<Status> ApplyLimits(store::SandboxRow before, store::SandboxRow wanted);
  // Writes a changed row of a living sandbox, and the event that tells of it.
  Task<Status> WriteChange(store::SandboxRow row, store::SandboxEvent event);
  Task<Status> ReplaceNetwork(std::shared_ptr<Record> record, bool allow_internet,
                              std::string as_requested_json);
  void OnBlocked(engine::Blocked blocked);
  void OnHeld(const std::string& id, bool held, int64_t free_mb);
  void Show(std::shared_ptr<Record> record);  // it takes requests from now on
  Task<void> WriteBlocked(store::SandboxEvent event);

  // ---- pause.cc
  // The one way to pause. `reason`: "request", "timeout", "idle", "shutdown", "drain".
  Task<Status> Pause(std::string id, bool memory, std::string reason);
  Task<void> PauseAtEnd(std::string id);
  Status CheckPausedQuota(const std::string& key_id) const;
  // Where the engine has it, after a call that failed.
  struct Whereabouts {
    bool known = true, running = false;  // not known: the engine does not answer
    std::optional<engine::Saved> saved;
  };
  Task<Whereabouts> Locate(std::string id);
  // Notes in the row that it is paused, and how.
  static void MarkPaused(store::SandboxRow& row, const engine::Saved& saved);
  static StringMap SavedFields(const store::SandboxRow& row, std::string reason);
  void ShowPaused(std::shared_ptr<Record> record);
  // A pause failed: the sandbox goes on as `row`, or has ended.
  Task<void> RunOn(std::shared_ptr<Record> record, store::SandboxRow row, std::string reason,
                   Error error, bool running, std::optional<engine::ExitReason> exited);
  // What a client is told when saving or continuing failed; the details go to the log.
  Error SaveFailure(const std::string& id, std::string_view doing, const Error& error) const;
  Status NotRunning(const std::string& id) const;

  // ---- resume.cc
  Task<Result<Connected>> ResumeNow(std::string id, ResumeOptions options, std::string reason);
  Task<Result<engine::Instance>> Continue(store::SandboxRow row, bool memory);
  Task<Result<UniqueFd>> DialEnvd(std::string id);
  // Tells an envd that was continued whose it is now. `owner`: whose token it has, "" if none.
  Task<Status> InitEnvd(store::SandboxRow row, std::string owner, bool reset_identity);
  // A resumed sandbox whose envd does not answer is put away again.
  Task<void> PutBack(std::shared_ptr<Record> record, Error error);
  // Lets traffic into a sandbox that was paused.
  Task<Info> Reopen(std::shared_ptr<Record> record, store::SandboxRow row,
                    std::chrono::seconds timeout, std::string reason, bool continued);
  // The engine could not continue it. Returns what the client is told.
  Task<Error> StayPaused(std::string id, std::string reason, Error error);

  // ---- snapshot.cc
  Task<Result<store::SnapshotRow>> SnapshotOnce(std::string key_id, std::string id,
                                                std::string name, std::string tag, bool memory);
  Task<Result<store::SnapshotRow>> SnapshotNow(std::string key_id, std::string id, std::string name,
                                               std::string tag, bool memory);
  const store::SnapshotRow* FindSnapshot(const std::string& key_id, std::string_view name) const;
  Task<Status> DeleteSnapshotNow(std::string id);
  // The engine's copy of a running sandbox, and what it is a copy of; nothing of it is stored.
  Task<Result<store::SnapshotRow>> CopyRunning(std::string id, std::string doing, bool memory);

  // ---- fork.cc
  Task<Result<std::vector<Result<Info>>>> ForkNow(std::string id, std::chrono::seconds timeout,
                                                  int64_t count);

  // ---- drain.cc
  Task<Drained> PauseAll(std::string reason, std::chrono::steady_clock::time_point deadline);
  Task<void> WatchIdle();
  Task<void> PauseIdle(std::string id, bool memory);

  // ---- adoption.cc
  Task<Status> Adopt();
  void AdoptSnapshots(std::vector<store::SnapshotRow> rows,
                      std::map<std::string, engine::Saved>& saved);
  void AdoptRow(store::SandboxRow row, bool running, const engine::Saved* saved, Time booted);
  void AdoptRunning(store::SandboxRow row);
  Task<void> Greet(store::SandboxRow row);
  Task<void> AdoptPaused(store::SandboxRow row, engine::Saved saved);
  Task<void> AdoptResumed(store::SandboxRow row);
  void DestroyOrphan(const std::string& id, bool saved);
  Task<void> EndLost(store::SandboxRow row, Ending ending);
  Task<void> ForgetSnapshot(std::string id);

  // ---- health.cc
  Task<void> Probe(std::shared_ptr<Record> record, std::string reason);
  Task<Status> CheckHealth(std::shared_ptr<Record> record);

  // ---- inspect.cc
  // What envd answers, without variables; kUnavailable if it cannot be asked.
  Task<Result<std::string>> ListProcesses(std::shared_ptr<Record> record);
  Task<void> WriteEvent(store::SandboxEvent event);

  asio::any_io_executor executor_;
  engine::Engine& engine_;
  const TemplateCatalog& templates_;
  const std::string secret_;
  Envd& envd_;
  const std::chrono::milliseconds save_timeout_;

  std::map<std::string, Creation> creating_;
  Idempotency idempotency_;
  Expiry expiry_;
  Sampler sampler_;
  std::map<std::string, store::SnapshotRow> snapshots_;
  Turns turns_;
  Time last_start_{};
  int64_t host_open_files_ = 0;
  std::map<std::string, int64_t> held_;  // how much was free
  bool stopping_ = false, draining_ = false;
  Condition pool_changed_;

  TaskGroup operations_;  // what must come to its end: creations, endings
  TaskGroup background_;  // what may be cut: timers, samples, probes
  SocketCache sockets_;
};

}  // namespace caisson::sandbox

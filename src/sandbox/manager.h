// Sandboxes as the platform sees them: lifecycle, policy, quotas. The only caller of engine/. All
// runs on the loop thread; the in-memory registry is the truth for traffic, the store for restarts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/config.h"
#include "base/time.h"
#include "engine/client.h"
#include "sandbox/envd.h"
#include "sandbox/limits.h"
#include "sandbox/snapshot.h"
#include "sandbox/template.h"
#include "store/store.h"

namespace caisson::sandbox {

using StringMap = std::map<std::string, std::string>;

enum class State { kRunning, kPaused };

struct NetworkOptions {
  bool allow_public_traffic = true;
  std::string mask_request_host;  // Host header for ports other than envd's; "${PORT}" is filled
  std::string as_requested_json;  // given back by Get, "" if none; see egress.h for what it means
};

// What happens at the end of its time, and on traffic after that.
struct Lifecycle {
  bool auto_pause = false;        // paused instead of killed
  bool auto_pause_memory = true;  // false: only its files are kept then
  bool auto_resume = false;       // traffic wakes it
};

struct CreateOptions {
  std::string key_id;                  // who asks
  std::string template_name = "base";  // or a snapshot's id or name
  std::chrono::seconds timeout{300};
  StringMap metadata;
  StringMap env;
  bool secure = true;
  bool allow_internet = true;
  NetworkOptions network;
  LimitOptions limits;
  Lifecycle lifecycle;
  // A repeated request with the same key and hash gets the same sandbox; "" = no such promise.
  std::string idempotency_key;
  std::string request_hash;
};

// How a paused sandbox lies on disk.
struct SavedState {
  std::string tier;        // "memory", "files", "frozen"; "" when it runs
  std::string why_frozen;  // a sentence
  int64_t memory_bytes = 0;
  int64_t disk_bytes = 0;
};

// A copy of what is known of one sandbox.
struct Info {
  std::string id;
  std::string key_id;
  std::string template_id;
  std::string alias;
  State state = State::kRunning;
  StringMap metadata;
  bool allow_internet = true;
  bool secure = true;
  NetworkOptions network;
  int64_t cpus = 0, memory_mb = 0, disk_mb = 0, pids = 0, open_files = 0;
  int64_t output_kbps = 0;  // 0 = unlimited
  Time started_at;
  Time end_at;
  Time active_at;             // the last request to it; of a paused one, its pause
  std::string access_token;   // of its clients; "" when not secure
  std::string inside_token;   // envd's own (secrets.h), never a client's; "" when not secure
  std::string traffic_token;  // "" when traffic is public
  Lifecycle lifecycle;
  SavedState saved;
};

struct ResumeOptions {
  std::chrono::seconds timeout{300};
  bool memory = true;              // false: a cold boot from its files
  std::optional<bool> auto_pause;  // replaces what was asked for at creation
};
struct Connected {
  Info info;
  bool resumed = false;  // false: it was running
};

// What came of pausing everything.
struct Drained {
  size_t paused = 0;
  std::vector<std::pair<std::string, std::string>> failed;  // id, why
};

struct ListFilter {
  std::string key_id;
  bool of_all_keys = false;  // SECURITY: for the server itself, never for a client
  StringMap metadata;        // all must match
  bool running = true;
  bool paused = true;
  bool ascending = false;             // by start time; default newest first
  std::optional<Time> started_after;  // inclusive
  std::string template_name;          // id or alias; "" = any
};

// What a sandbox used at one moment.
struct Sample {
  engine::Usage usage;
  double cpu_used_pct = 0;  // of all its CPUs together: 0..100, since the sample before
};

// All that is known of a sandbox, also of one that has ended.
struct Detail {
  Info info;
  std::string state;   // "running", "paused", "killed"
  std::string reason;  // why it ended, "" while it has not
  std::optional<Time> ended_at;
  std::optional<Sample> last;          // of one that runs
  std::optional<engine::Saved> saved;  // of one that is paused
};

// What somebody needs who has to find out what went wrong. Holds no token and no variable.
struct Diagnosis {
  Detail detail;
  std::vector<store::SandboxEvent> events;  // the newest ones, oldest first
  std::vector<Sample> samples;              // likewise
  std::string processes_json;               // a list, of those that envd started; "" if not asked
  std::string processes_error;              // why envd could not be asked
  std::optional<engine::Capabilities> capabilities;
};

// How much disk the sandboxes of this server use.
struct StorageUse {
  struct Part {
    int64_t count = 0;
    int64_t memory_bytes = 0;  // saved memory, on disk
    int64_t disk_bytes = 0;
  };
  Part running, paused, snapshots;
};

// Sandboxes that are kept ready for a create.
struct PoolNumbers {
  size_t ready = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
};

// What the gateway looks up on every request: no copy, no database.
struct Route {
  std::string id;
  std::string access_token;  // "" when not secure, like the next
  std::string inside_token;  // what envd wants in its place (secrets.h)
  std::string traffic_token;
  bool allow_public_traffic = true;
  std::string mask_request_host;
  bool held = false;                    // it stands still until the host's disk has room
  std::set<uint16_t> https_ports = {};  // where TLS is spoken inside
  // SECURITY: ports where this server itself listens inside the sandbox (Manager::Listen), for the
  // sandbox's own processes: the gateway treats them as closed.
  std::set<uint16_t> private_ports = {};
};

class Manager {
 public:
  Manager(asio::any_io_executor executor, const Config& config, engine::Engine& engine,
          store::Store& store, const TemplateCatalog& templates, std::string secret,
          Envd& envd = RealEnvd());
  ~Manager();

  // Adopts what lives, ends what does not (with its reason), then starts timers and sampling.
  Task<Status> Start();
  // Stops timers and sampling. Sandboxes live on, or are paused if `on_shutdown` says so.
  Task<void> Stop();

  // The work goes on when the caller is canceled, so nothing is left half made. Fails with:
  // kNotFound (template), kInvalidArgument (timeout, sizes), kResourceExhausted (the key's quota),
  // kUnavailable (this server is full or cannot start one now), kDeadlineExceeded; for idempotent
  // requests kAborted (the first is still at work) and kAlreadyExists (it was another request).
  Task<Result<Info>> Create(CreateOptions options);
  // kNotFound for ids that do not exist, have ended, or belong to another key.
  Result<Info> Get(const std::string& key_id, const std::string& id) const;
  std::string Workspace(const std::string& id) const;  // its template's; "" = that names none
  // Sorted by start time (then id), filtered; the caller pages.
  std::vector<Info> List(const ListFilter& filter) const;
  // Traffic ends at once; returns when every trace is gone. The second of two kills is kNotFound.
  // Also for paused ones; wins over a pause or a resume that is under way.
  Task<Status> Kill(std::string key_id, std::string id);
  // Sets the end to now + timeout (0: ends now), at most LongestTimeout() after the start. With
  // `only_extend` it never gets shorter, and a longer timeout is kInvalidArgument.
  Task<Result<Info>> SetTimeout(std::string key_id, std::string id, std::chrono::seconds timeout,
                                bool only_extend);

  // ---- pause, snapshots, forks: one at a time per sandbox, others wait for their turn ----------
  // Traffic ends, then it is saved; on failure it runs on. kFailedPrecondition: it is paused.
  // `memory` false: only its files are kept. With `healthy` an envd that does not answer is a
  // reason not to pause (kUnavailable).
  Task<Status> Pause(std::string key_id, std::string id, bool memory, bool healthy = false);
  // Resumes a paused one; of a running one the end is moved as SetTimeout with `only_extend` does.
  // Fails as Create() does when there is no room.
  Task<Result<Connected>> Connect(std::string key_id, std::string id, ResumeOptions options);
  // The same, but one that runs is kFailedPrecondition.
  Task<Result<Info>> Resume(std::string key_id, std::string id, ResumeOptions options);
  // An immutable copy of a running sandbox, a template for the same key.
  Task<Result<store::SnapshotRow>> MakeSnapshot(std::string key_id, std::string id,
                                                SnapshotOptions options = {});
  // Newest first.
  std::vector<store::SnapshotRow> ListSnapshots(const SnapshotFilter& filter) const;
  // `name` as SnapshotName() has it, or the bare id. Sandboxes made from it live on.
  Task<Status> DeleteSnapshot(std::string key_id, std::string name);
  // Copies of a running sandbox under new ids; each comes up or fails on its own.
  Task<Result<std::vector<Result<Info>>>> Fork(std::string key_id, std::string id,
                                               std::chrono::seconds timeout, int64_t count);
  // From now on nothing starts (kUnavailable), and what runs is paused.
  Task<Drained> Drain();
  void EndDrain();

  // Replaces the network settings that Get gives back, and what the sandbox may reach: at once, as
  // a whole; connections to what it may no longer reach are cut.
  Task<Status> SetNetwork(std::string key_id, std::string id, bool allow_internet,
                          std::string as_requested_json);
  // Takes effect at once, of a paused one when it runs again, and survives a restart of the server.
  // kInvalidArgument for what is out of range or cannot be changed, kUnimplemented: not here.
  Task<Result<Info>> SetLimits(std::string key_id, std::string id, LimitOptions limits);
  // Oldest first; with a time also means of what was before the samples. Measures if there is none.
  Task<Result<std::vector<Sample>>> Metrics(std::string key_id, std::string id,
                                            std::optional<Time> start, std::optional<Time> end);
  // What it uses now, measured for this call. kFailedPrecondition if it does not run.
  Task<Result<engine::Usage>> Usage(std::string key_id, std::string id);
  // Also of sandboxes that have ended, as long as the store keeps them.
  Task<Result<std::vector<store::SandboxEvent>>> Events(std::string key_id, std::string id,
                                                        store::EventQuery query);
  Task<Result<std::vector<store::TemplateUse>>> TemplateUse();
  // The other server of this database that has this sandbox of this key; "" if none has.
  Task<Result<std::string>> FindNode(std::string key_id, std::string id);
  // Both also of sandboxes that have ended, like Events().
  Task<Result<Detail>> Inspect(std::string key_id, std::string id);
  Task<Result<Diagnosis>> Diagnose(std::string key_id, std::string id);
  // Of all keys together.
  Task<Result<StorageUse>> Storage();

  // ---- rates -----------------------------------------------------------------
  // Counts a request of this key; kResourceExhausted if it asks too often.
  Status Admit(const std::string& key_id);
  // Reads the limits of keys again, after they have changed.
  Task<Status> ReloadKeyLimits();
  // When a key that got kResourceExhausted should try again; the longest run it may ask for.
  std::chrono::seconds RetryAfter(const std::string& key_id) const;
  std::chrono::seconds LongestTimeout(const std::string& key_id) const;

  // ---- traffic ---------------------------------------------------------------
  // Null when the sandbox does not exist or is not running. Valid until the next co_await.
  const Route* FindRoute(std::string_view id) const;
  // The same of a paused sandbox that traffic may wake.
  const Route* FindSleeper(std::string_view id) const;
  // Resumes such a sandbox; many may ask at once. SECURITY: the caller has checked the tokens.
  // kResourceExhausted: too many wait or run; kAborted: it is changing state for too long.
  Task<Status> Wake(std::string id);
  // Of all secure sandboxes that run or that traffic may wake, to match a signed URL.
  void ForEachRoute(const std::function<bool(const Route&)>& until_true) const;
  // A socket that connect()s to the sandbox's own loopback; see engine::Driver::Dial.
  Task<Result<UniqueFd>> Dial(std::string id);
  // A socket that listens on 127.0.0.1:`port` inside the sandbox; see engine::Driver::Listen. The
  // gateway leads nobody to that port from now on. As long as it is open the sandbox's network
  // stays, so close it when the sandbox stops running.
  Task<Result<UniqueFd>> Listen(std::string key_id, std::string id, uint16_t port);
  // Calls `gone` (once) when the sandbox stops running; returns a handle to unsubscribe. Calls it
  // before returning if the sandbox does not run now.
  using GoneId = uint64_t;
  GoneId SubscribeGone(const std::string& id, std::function<void()> gone);
  void UnsubscribeGone(const std::string& id, GoneId handle);
  // The gateway saw that envd accepts no connection or does not answer: checked and, if so,
  // recorded as an event with its reason.
  void ReportUnresponsive(const std::string& id, std::string reason);
  // It is being paused, copied or changed right now.
  bool StandsStill(const std::string& id) const;

  size_t running() const;
  size_t paused() const;
  // Of what is saved, as it was when it was saved; nothing is asked for it. `running` is empty.
  StorageUse saved() const;
  PoolNumbers pool() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caisson::sandbox

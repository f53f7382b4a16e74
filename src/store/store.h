// What survives a restart. SQL stays inside this module, which speaks it to SQLite or PostgreSQL.
// Every call may block and runs on threads of the store; the interface is asynchronous.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "base/time.h"
#include "store/retention.h"
#include "store/transaction.h"

namespace caisson::store {

// What a key may do, where it differs from the server's settings of the same meaning; 0 =
// unlimited.
struct KeyLimits {
  std::optional<int64_t> rate_limit;         // requests per second
  std::optional<int64_t> rate_burst;         // requests at once
  std::optional<int64_t> create_rate_limit;  // sandboxes started per minute
  std::optional<int64_t> max_sandboxes;      // running at once
  // The most that one sandbox may have.
  std::optional<int64_t> max_sandbox_cpus;
  std::optional<int64_t> max_sandbox_memory_mb;
  std::optional<int64_t> max_sandbox_disk_mb;
  std::optional<int64_t> max_sandbox_pids;
  std::optional<int64_t> max_sandbox_open_files;
  std::optional<int64_t> max_sandbox_output_kbps;
  std::optional<int64_t> max_timeout_s;  // longest life of one run

  bool operator==(const KeyLimits&) const = default;
};

// Their names, in the database and on the command line.
struct NamedKeyLimit {
  std::string_view name;
  std::optional<int64_t> KeyLimits::* field;
};
inline constexpr std::array kKeyLimits = {
    NamedKeyLimit{"rate_limit", &KeyLimits::rate_limit},
    NamedKeyLimit{"rate_burst", &KeyLimits::rate_burst},
    NamedKeyLimit{"create_rate_limit", &KeyLimits::create_rate_limit},
    NamedKeyLimit{"max_sandboxes", &KeyLimits::max_sandboxes},
    NamedKeyLimit{"max_sandbox_cpus", &KeyLimits::max_sandbox_cpus},
    NamedKeyLimit{"max_sandbox_memory_mb", &KeyLimits::max_sandbox_memory_mb},
    NamedKeyLimit{"max_sandbox_disk_mb", &KeyLimits::max_sandbox_disk_mb},
    NamedKeyLimit{"max_sandbox_pids", &KeyLimits::max_sandbox_pids},
    NamedKeyLimit{"max_sandbox_open_files", &KeyLimits::max_sandbox_open_files},
    NamedKeyLimit{"max_sandbox_output_kbps", &KeyLimits::max_sandbox_output_kbps},
    NamedKeyLimit{"max_timeout_s", &KeyLimits::max_timeout_s},
};

struct ApiKey {
  std::string id;
  std::string name;
  std::string hash;  // SHA-256, hex: the key itself is never stored
  std::string hint;  // its first characters, to recognise it: "e2b_1a2b…"
  Time created_at;
  std::optional<Time> revoked_at;
  KeyLimits limits;
  std::string user_id;  // whose key it is; "" = the user whose id is the key's
  std::optional<Time> last_used_at;
};

// A sandbox as the platform knows it. Tokens are not stored: they are derived from the server's
// secret and the id.
struct SandboxRow {
  std::string id;
  std::string key_id;  // the API key that owns it
  std::string template_id;
  std::string alias;   // the name it was asked for by
  std::string state;   // "running", "paused", "killed"
  std::string reason;  // why it ended: "request", "timeout", "envd_killed", ...
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> env;
  bool secure = true;
  bool allow_internet = true;
  bool allow_public_traffic = true;
  std::string network_json;  // the network settings as asked for, "" if none
  std::string mask_request_host;
  int64_t cpus = 0;
  int64_t memory_mb = 0;
  int64_t disk_mb = 0;
  int64_t pids = 0;  // this one and the next: 0 in rows of older programs, which had the defaults
  int64_t open_files = 0;
  int64_t output_kbps = 0;      // 0 = unlimited
  int64_t timeout_s = 0;        // as asked for at creation
  std::string idempotency_key;  // as sent with the request, "" if none
  std::string request_hash;     // of the request that came with that key
  Time started_at;              // or resumed, whatever was last
  Time end_at;                  // of a paused one: when it was paused
  std::optional<Time> ended_at;
  // What happens at the end of its time, and on traffic after that.
  bool auto_pause = false;
  bool auto_pause_memory = true;
  bool auto_resume = false;
  // How a paused one lies on disk; "" and 0 for others.
  std::string saved_tier;  // "memory", "files", "frozen"
  std::string saved_why;   // a sentence, for "frozen"
  int64_t saved_memory_bytes = 0;
  int64_t saved_disk_bytes = 0;
};

// An immutable copy of a sandbox, from which others are made. It outlives the sandbox.
struct SnapshotRow {
  std::string id;          // the engine's name of it
  std::string key_id;      // the API key that owns it
  std::string sandbox_id;  // the sandbox it was taken of; its envd has that one's token
  std::string name;        // "" if it has none; of one key no two have the same name and tag
  std::string tag = "default";
  std::string template_id;
  std::string alias;
  std::map<std::string, std::string> env;
  bool secure = true;  // envd asks for a token
  int64_t cpus = 0;
  int64_t memory_mb = 0;
  int64_t disk_mb = 0;
  int64_t pids = 0;
  int64_t open_files = 0;
  int64_t output_kbps = 0;
  std::string tier;  // "memory", "files"
  int64_t memory_bytes = 0;
  int64_t disk_bytes = 0;
  Time created_at;
};

// A fact about a sandbox, for its timeline and logs.
struct SandboxEvent {
  int64_t id = 0;  // grows
  std::string sandbox_id;
  Time at;
  std::string type;  // "created", "timeout_set", "killed", ...
  std::string level = "info";
  std::string message;
  std::map<std::string, std::string> fields;
};

// Which events of a sandbox.
struct EventQuery {
  std::optional<Time> since;  // inclusive
  std::optional<Time> until;  // inclusive
  int64_t after_id = 0;       // only later ones
  bool newest_first = false;
  size_t limit = 1000;
  std::vector<std::string> levels;  // empty: all
  std::string text;                 // part of the message, "" = any
};

// How often a template was used, as far as rows are kept.
struct TemplateUse {
  std::string template_id;
  int64_t sandboxes = 0;
  Time last_started_at;
};

// The connections to the database.
struct DatabasePool {
  int64_t connections = 0;
  int64_t busy = 0;     // of those
  int64_t waiting = 0;  // calls
};

class Store {
 public:
  virtual ~Store() = default;

  // ---- the work platform: jobs that work with rows --------------------------------
  // Runs `job` (Result<T> of a Transaction&) in one transaction, which is committed when this
  // returns a value and leaves no trace when it returns an error. Cannot be canceled.
  template <class Job>
  auto Write(Job job) {
    return Call(true, std::move(job));
  }
  // The same for one that changes nothing.
  template <class Job>
  auto Read(Job job) {
    return Call(false, std::move(job));
  }
  // Called on the executor after every commit that appended events, by whichever server.
  virtual void OnEvents(std::function<void()> called) = 0;

  // ---- sandbox/ --------------------------------------------------------------------

  virtual Task<Result<std::vector<ApiKey>>> ListApiKeys() = 0;
  virtual Task<Status> AddApiKey(ApiKey key) = 0;
  // kNotFound if there is no such key. A key that was revoked stays so.
  virtual Task<Status> UpdateApiKey(ApiKey key) = 0;

  // Row and event in one transaction. Inserting an id that exists is kAlreadyExists, updating one
  // that does not, or was killed, is kNotFound.
  virtual Task<Status> InsertSandbox(SandboxRow row, SandboxEvent event) = 0;
  virtual Task<Status> UpdateSandbox(SandboxRow row, SandboxEvent event) = 0;
  // Every row of this server whose state is not "killed".
  virtual Task<Result<std::vector<SandboxRow>>> ListLiveSandboxes() = 0;
  virtual Task<Result<std::optional<SandboxRow>>> GetSandbox(std::string id) = 0;
  // The other server that has this sandbox of this key; "" if none has, or if it has ended.
  virtual Task<Result<std::string>> FindNode(std::string key_id, std::string id) = 0;
  virtual Task<Result<std::vector<TemplateUse>>> ListTemplateUse() = 0;

  // Row and the sandbox's event in one transaction. A snapshot that has the same name and tag loses
  // them to the new one.
  virtual Task<Status> InsertSnapshot(SnapshotRow row, SandboxEvent event) = 0;
  // kNotFound if there is none.
  virtual Task<Status> DeleteSnapshot(std::string id) = 0;
  // Those of this server, oldest first.
  virtual Task<Result<std::vector<SnapshotRow>>> ListSnapshots() = 0;

  // kNotFound if there is no such sandbox.
  virtual Task<Status> AppendEvent(SandboxEvent event) = 0;
  // In the order they were appended, or the reverse.
  virtual Task<Result<std::vector<SandboxEvent>>> ListEvents(std::string sandbox_id,
                                                             EventQuery query) = 0;

  virtual DatabasePool pool() = 0;
  // Which server this is among those of the database; "" if it is the only one.
  virtual const std::string& node() const = 0;
  // Waits for queued writes and closes; later calls are kUnavailable.
  virtual Task<Status> Close() = 0;

 protected:
  virtual Task<Status> Submit(bool write, std::function<Status(Transaction&)> job) = 0;

 private:
  template <class Job, class T = typename std::invoke_result_t<Job, Transaction&>::value_type>
  Task<Result<T>> Call(bool write, Job job) {
    auto answer = std::make_shared<std::optional<Result<T>>>();
    Status done =
        co_await Submit(write, [job = std::move(job), answer](Transaction& transaction) mutable {
          answer->emplace(job(transaction));
          return **answer ? Status() : Status(tl::unexpect, (*answer)->error());
        });
    if (!done) co_return tl::unexpected(std::move(done).error());
    co_return std::move(**answer);
  }
};

struct StoreOptions {
  int64_t max_events = 10'000;                 // kept per sandbox; the oldest go first
  int64_t max_queue = 10'000;                  // calls waiting; more are kResourceExhausted
  std::chrono::milliseconds patience{15'000};  // calls wait so long for a database that is away
  Retention retention;
  // PostgreSQL only: connections kept, the most there are, and the name of this server, whose
  // sandboxes and snapshots are its own. (A SQLite file belongs to one server.)
  int64_t pool_min = 5;
  int64_t pool_max = 20;
  std::string node;
};

// "sqlite:///abs/path.db" or "postgresql://user:password@host/database". Applies missing
// migrations; refuses a schema newer than this program. Calls are made on `executor` and resume
// there.
Result<std::unique_ptr<Store>> OpenStore(const std::string& url, asio::any_io_executor executor,
                                         StoreOptions options = {});

}  // namespace caisson::store

// What survives a restart. SQL stays inside this module; SQLite now, PostgreSQL behind the same
// interface later. Every call may block and runs on the store's own thread; the interface is
// asynchronous.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/time.h"

namespace caisson::store {

struct ApiKey {
  std::string id;
  std::string name;
  std::string hash;  // SHA-256, hex: the key itself is never stored
  std::string hint;  // its first characters, to recognise it: "e2b_1a2b…"
  Time created_at;
  std::optional<Time> revoked_at;
};

// A sandbox as the platform knows it. Tokens are not stored: they are derived from the server's
// secret and the id.
struct SandboxRow {
  std::string id;
  std::string key_id;  // the API key that owns it
  std::string template_id;
  std::string alias;   // the name it was asked for by
  std::string state;   // "running", "killed"; "paused" later
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
  int64_t timeout_s = 0;  // as asked for at creation
  Time started_at;
  Time end_at;
  std::optional<Time> ended_at;
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

class Store {
 public:
  virtual ~Store() = default;

  virtual Task<Result<std::vector<ApiKey>>> ListApiKeys() = 0;
  virtual Task<Status> AddApiKey(ApiKey key) = 0;

  // Row and event in one transaction.
  virtual Task<Status> InsertSandbox(SandboxRow row, SandboxEvent event) = 0;
  virtual Task<Status> UpdateSandbox(SandboxRow row, SandboxEvent event) = 0;
  virtual Task<Result<std::vector<SandboxRow>>> ListLiveSandboxes() = 0;
  virtual Task<Result<std::optional<SandboxRow>>> GetSandbox(std::string id) = 0;

  virtual Task<Status> AppendEvent(SandboxEvent event) = 0;
  // Oldest first, at or after `since`, at most `limit`.
  virtual Task<Result<std::vector<SandboxEvent>>> ListEvents(std::string sandbox_id, Time since,
                                                             size_t limit) = 0;

  // Waits for queued writes and closes.
  virtual Task<Status> Close() = 0;
};

// "sqlite:///abs/path.db". Applies missing migrations; refuses a schema newer than this program.
Result<std::unique_ptr<Store>> OpenStore(const std::string& url, asio::any_io_executor executor);

}  // namespace caisson::store

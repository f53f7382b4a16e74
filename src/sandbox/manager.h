// Sandboxes as the platform sees them: lifecycle, policy, quotas. The only caller of engine/.
// Everything runs on the loop thread; the in-memory registry is the truth for traffic, the store
// for restarts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/config.h"
#include "base/time.h"
#include "engine/client.h"
#include "sandbox/template.h"
#include "store/store.h"

namespace caisson::sandbox {

using StringMap = std::map<std::string, std::string>;

enum class State { kRunning, kPaused };

struct NetworkOptions {
  bool allow_public_traffic = true;
  std::string mask_request_host;  // Host header for ports other than envd's; "${PORT}" is filled
  std::string as_requested_json;  // given back by Get, "" if none
};

struct CreateOptions {
  std::string key_id;  // who asks
  std::string template_name = "base";
  std::chrono::seconds timeout{300};
  StringMap metadata;
  StringMap env;
  bool secure = true;
  bool allow_internet = true;
  NetworkOptions network;
  // A repeated request with the same key and hash gets the same sandbox; "" = no such promise.
  std::string idempotency_key;
  std::string request_hash;
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
  int64_t cpus = 0;
  int64_t memory_mb = 0;
  int64_t disk_mb = 0;
  Time started_at;
  Time end_at;
  std::string access_token;   // envd's; "" when not secure
  std::string traffic_token;  // "" when traffic is public
};

struct ListFilter {
  std::string key_id;
  StringMap metadata;  // all must match
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

// What the gateway needs to know, looked up on every request: no copy, no database.
struct Route {
  std::string id;
  std::string access_token;
  std::string traffic_token;
  bool allow_public_traffic = true;
  std::string mask_request_host;
};

class Manager {
 public:
  Manager(asio::any_io_executor executor, const Config& config, engine::Engine& engine,
          store::Store& store, const TemplateCatalog& templates, std::string secret);
  ~Manager();

  // Adopts what lives, ends what does not (with its reason), then starts timers and sampling.
  Task<Status> Start();
  // Stops timers and sampling. Sandboxes live on.
  Task<void> Stop();

  // The work goes on when the caller is canceled, so nothing is left half made. Fails with:
  // kNotFound (template), kInvalidArgument (timeout, sizes), kResourceExhausted (the key's quota),
  // kUnavailable (this server is full or cannot start one now), kDeadlineExceeded; for idempotent
  // requests kAborted (the first is still at work) and kAlreadyExists (it was another request).
  Task<Result<Info>> Create(CreateOptions options);
  // kNotFound for ids that do not exist, have ended, or belong to another key.
  Result<Info> Get(const std::string& key_id, const std::string& id) const;
  // Sorted by start time (then id), filtered; the caller pages.
  std::vector<Info> List(const ListFilter& filter) const;
  // Traffic ends at once; returns when every trace is gone. The second of two kills is kNotFound.
  Task<Status> Kill(std::string key_id, std::string id);
  // Sets the end to now + timeout (0: ends now), at most max_timeout_s after the start. With
  // `only_extend` it never gets shorter, and a timeout above max_timeout_s is kInvalidArgument.
  Task<Result<Info>> SetTimeout(std::string key_id, std::string id, std::chrono::seconds timeout,
                                bool only_extend);
  // Replaces the network settings that Get gives back. What the sandbox may reach cannot change
  // while it runs: another `allow_internet` than now is kUnimplemented.
  Task<Status> SetNetwork(std::string key_id, std::string id, bool allow_internet,
                          std::string as_requested_json);
  // Oldest first. Measures once when there is no sample yet.
  Task<Result<std::vector<Sample>>> Metrics(std::string key_id, std::string id,
                                            std::optional<Time> start, std::optional<Time> end);
  // Also of sandboxes that have ended, as long as the store keeps them.
  Task<Result<std::vector<store::SandboxEvent>>> Events(std::string key_id, std::string id,
                                                        store::EventQuery query);
  Task<Result<std::vector<store::TemplateUse>>> TemplateUse();

  // ---- traffic ---------------------------------------------------------------
  // Null when the sandbox does not exist or is not running. Valid until the next co_await.
  const Route* FindRoute(std::string_view id) const;
  // The routes of all running secure sandboxes, for matching a signed URL without a header.
  void ForEachRoute(const std::function<bool(const Route&)>& until_true) const;
  // A socket that connect()s to the sandbox's own loopback; see engine::Driver::Dial.
  Task<Result<UniqueFd>> Dial(std::string id);
  // Calls `gone` (once) when the sandbox stops running; returns a handle to unsubscribe. Calls it
  // before returning if the sandbox does not run now.
  using GoneId = uint64_t;
  GoneId SubscribeGone(const std::string& id, std::function<void()> gone);
  void UnsubscribeGone(const std::string& id, GoneId handle);
  // The gateway saw that envd accepts no connection or does not answer: checked and, if so,
  // recorded as an event with its reason.
  void ReportUnresponsive(const std::string& id, std::string reason);

  size_t running() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caisson::sandbox

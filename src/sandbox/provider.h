// Who supplies sandboxes to the work platform: this server's own engine, or any server that speaks
// the E2B API. What is above does not know which.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/time.h"
#include "sdk/api_keys.h"
#include "sdk/envd_client.h"

namespace caisson::sandbox {

class Manager;

struct ProviderOptions {
  std::string owner_id;       // the user who may see it; the local provider's key id
  std::string template_name;  // "" = the provider's usual one
  std::chrono::seconds timeout{3600};
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> env;
  bool allow_internet = true;
  // At the end of its time it is paused instead of killed, and a request to one of its ports wakes
  // it.
  bool sleeps = false;
  // The same create, repeated with the same text, gives the same sandbox. "" = no such promise.
  std::string idempotency_key;
};

struct ProviderInfo {
  std::string id;  // the provider's
  std::string owner_id;
  std::string state;  // "running", "paused", "terminated"
  std::string template_id;
  std::map<std::string, std::string> metadata;
  Time started_at;
  Time ends_at;
  std::optional<Time> last_traffic_at;  // a request through the gateway, if the provider knows
};

class Provider {
 public:
  virtual ~Provider() = default;
  virtual std::string name() const = 0;  // "local", "e2b"

  // kResourceExhausted: its quota; kUnavailable: not configured, or it is down; kUnauthenticated:
  // its key is refused.
  virtual Task<Result<ProviderInfo>> Create(ProviderOptions options) = 0;
  // Looks, without waking it. kNotFound once it is gone.
  virtual Task<Result<ProviderInfo>> Get(std::string owner_id, std::string id) = 0;
  // Those whose metadata has all of these; owner "" = of everybody.
  virtual Task<Result<std::vector<ProviderInfo>>> List(
      std::string owner_id, std::map<std::string, std::string> metadata) = 0;
  // Why one that is gone has ended: "timeout", "request", ...; "" if the provider does not tell.
  virtual Task<std::string> EndReason(std::string /*owner_id*/, std::string /*id*/) {
    co_return "";
  }
  virtual Task<Status> Kill(std::string owner_id, std::string id) = 0;
  virtual Task<Status> Pause(std::string owner_id, std::string id) = 0;
  // Makes sure that it runs, and that it does for so long.
  virtual Task<Status> Resume(std::string owner_id, std::string id,
                              std::chrono::seconds timeout) = 0;
  virtual Task<Status> SetTimeout(std::string owner_id, std::string id,
                                  std::chrono::seconds timeout) = 0;
  // The CPU time it has used since it was started or resumed last; nothing if the provider does not
  // tell. kFailedPrecondition: it is paused.
  virtual Task<Result<std::optional<std::chrono::milliseconds>>> CpuTime(std::string /*owner_id*/,
                                                                         std::string /*id*/) {
    co_return std::nullopt;
  }
  // Saves the files of a running sandbox; the template name that Create() makes another from. The
  // same call, repeated with the same `name`, gives the same snapshot; no two callers of all owners
  // use one name.
  virtual Task<Result<std::string>> Snapshot(std::string owner_id, std::string id,
                                             std::string name) = 0;
  // By what Snapshot() gave, or by its name. Gone already is fine.
  virtual Task<Status> DeleteSnapshot(std::string owner_id, std::string name) = 0;
  // kFailedPrecondition: it is paused.
  virtual Task<Result<sdk::EnvdClient>> Envd(std::string owner_id, std::string id) = 0;
  // A socket whose connections come from 127.0.0.1:`port` of the sandbox's own network, outside of
  // its reach. After a pause it has to be asked for again. kFailedPrecondition: it is paused, or
  // its template has not what this needs.
  virtual Task<Result<UniqueFd>> Listen(std::string owner_id, std::string id, uint16_t port) = 0;
  // Its public host name for a port, without asking anybody.
  virtual std::string Host(const std::string& id, uint16_t port) const = 0;

  // The keys it is called with, if it has any, and who hears when one of them is refused.
  virtual std::vector<sdk::ApiKeyUse> Keys() const { return {}; }
  virtual void OnKeyRefused(sdk::ApiKeys::Refused /*handler*/) {}

  // Where work happens inside, if its template says so; "" if not. Asks nobody.
  virtual std::string Workspace(const std::string& /*id*/) const { return ""; }

  // Whether connections still arrive at what Listen() gave, if it has not been closed.
  virtual bool Listens(const std::string& /*id*/, uint16_t /*port*/) const { return true; }
  // Before it is destroyed: ends what Listen() has begun.
  virtual Task<void> Stop() { co_return; }
};

std::unique_ptr<Provider> MakeLocalProvider(Manager& manager, const Config& config);
// Speaks to config.e2b_api_url with the keys in config.e2b_api_key. Calls are retried as S1-47 says
// and stop at an open circuit.
std::unique_ptr<Provider> MakeE2bProvider(asio::any_io_executor executor, const Config& config);
// The same, with a line in the log for every call.
std::unique_ptr<Provider> LogCalls(std::unique_ptr<Provider> provider);

}  // namespace caisson::sandbox

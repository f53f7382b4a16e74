// A client of the E2B control plane: ours, E2B's own, or any other server that speaks it.
#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/time.h"
#include "sdk/api_keys.h"
#include "sdk/endpoint.h"
#include "sdk/envd_client.h"
#include "sdk/retry.h"

namespace caisson::sdk {

struct ControlOptions {
  Endpoint endpoint;
  std::string api_key;                        // or several, see ApiKeys
  std::chrono::milliseconds timeout{60'000};  // of one attempt
  RetryOptions retry;
  int breaker_failures = 5;
  std::chrono::milliseconds breaker_open{30'000};
};

struct NewSandbox {
  std::string template_id;
  std::chrono::seconds timeout{300};
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> env;
  bool allow_internet = true;
  bool sleeps = false;          // paused at its end, woken by traffic
  std::string idempotency_key;  // "" = none; servers that do not know it ignore it
};

struct RemoteSandbox {
  std::string id;
  std::string template_id;
  std::string state = "running";  // "running", "paused"
  std::string access_token;       // envd's; "" in lists
  std::string domain;             // "" = the API's own
  std::map<std::string, std::string> metadata;
  Time started_at;
  Time ends_at;
};

// Errors: kUnauthenticated (401, 403), kNotFound (404), kInvalidArgument (400, 422),
// kFailedPrecondition (409), kResourceExhausted (429), kUnavailable (everything that may pass, an
// open circuit), kDeadlineExceeded. What may pass was tried again before.
class ControlClient {
 public:
  explicit ControlClient(ControlOptions options);

  Task<Result<RemoteSandbox>> Create(NewSandbox request);
  Task<Result<RemoteSandbox>> Get(std::string id);
  Task<Result<std::vector<RemoteSandbox>>> List(std::map<std::string, std::string> metadata);
  Task<Status> Kill(std::string id);
  Task<Status> Pause(std::string id);
  // Resumes it if it is paused; of one that runs the end is only moved outwards.
  Task<Result<RemoteSandbox>> Connect(std::string id, std::chrono::seconds timeout);
  Task<Status> SetTimeout(std::string id, std::chrono::seconds timeout);
  // The id of the template that was made of it. Under a name that exists already E2B makes another
  // build of the same template, this project's server gives the one there is.
  Task<Result<std::string>> Snapshot(std::string id, std::string name);
  Task<Status> DeleteTemplate(std::string id);
  // A client of the sandbox's envd; asks nobody. `sandbox` as Get() or Create() gave it.
  EnvdClient Envd(const RemoteSandbox& sandbox) const;
  // "49983-id.domain".
  std::string Host(const std::string& id, uint16_t port) const;
  ApiKeys& keys() { return keys_; }
  const ApiKeys& keys() const { return keys_; }

 private:
  struct Answer {
    boost::json::value body;  // null if it was empty
    std::string next_token;
  };
  Task<Result<Answer>> Call(std::string method, std::string target,
                            std::optional<boost::json::object> body = {},
                            std::string idempotency_key = "");
  // With one key after the other, until one is not refused.
  Task<Result<Answer>> Attempt(http::RequestHead& head, const std::string& body, RetryHint& hint);
  Task<Result<Answer>> Ask(const http::RequestHead& head, const std::string& body, RetryHint& hint);

  ControlOptions options_;
  ApiKeys keys_;
  CircuitBreaker breaker_;
};

}  // namespace caisson::sdk

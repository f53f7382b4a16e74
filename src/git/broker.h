// The credential broker: listens inside a sandbox's own loopback, speaks HTTP there, adds the
// credential outside, and passes on only what the sandbox's task may do. The token is never inside.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/config.h"
#include "base/fd.h"
#include "git/repository.h"

namespace caisson::git {

// Who gives the credential when it is needed: a fresh one each time, so that it can be renewed.
// `refresh` true: the last one was refused.
using CredentialSource =
    std::function<Task<Result<std::string>>(Repository repository, bool refresh)>;

// What one sandbox may reach through its broker.
struct Grant {
  Repository repository;
  // Pushes only to refs/heads/<prefix>*; empty: none at all. "task-7" also allows "task-7/x" and
  // "task-7-x".
  std::vector<std::string> push_prefixes;
  bool push_tags = false;       // new tags may be pushed too
  CredentialSource credential;  // empty: none is added (a public repository)
  bool by_ssh = false;          // with the server's deploy key, at repository.ssh
};

// A host of a language model: requests to /model/<name>/... are passed on to `base_url` with the
// key.
struct ModelRoute {
  std::string name;      // "anthropic"
  std::string base_url;  // "https://api.anthropic.com"
  std::string header;    // "x-api-key", "authorization"
  std::string value;     // SECURITY: never inside
};
// From config.model_routes ("NAME=https://HOST KEYVARIABLE [HEADER]", one per line or comma) and
// the environment variables it names.
Result<std::vector<ModelRoute>> ParseModelRoutes(
    const std::string& text, const std::map<std::string, std::string>& environment);

class Broker {
 public:
  // The port inside every sandbox.
  static constexpr uint16_t kPort = 49'990;

  Broker(asio::any_io_executor executor, const Config& config, std::vector<ModelRoute> models = {});
  ~Broker();
  Task<void> Stop();

  // Serves on `listener` (sandbox::Provider::Listen) for this sandbox until Close() or another
  // Open() for the same sandbox.
  Status Open(const std::string& sandbox_id, UniqueFd listener, Grant grant);
  void Close(const std::string& sandbox_id);
  bool IsOpen(const std::string& sandbox_id) const;

  // The URL that git inside the sandbox uses instead of the real one.
  static std::string RemoteUrl(const Repository& repository);
  static std::string ModelUrl(const std::string& route);

  // For metrics: since the start, and now.
  struct Numbers {
    uint64_t fetches = 0, pushes = 0, refused = 0, model_requests = 0;
    size_t sandboxes = 0, connections = 0;
  };
  Numbers numbers() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caisson::git

// What the manager asks of envd inside a sandbox, over a socket that the engine made.
#pragma once

#include <map>
#include <string>

#include "base/async.h"
#include "base/fd.h"

namespace caisson::sandbox {

// What an envd that was continued from a saved state must be told anew.
struct EnvdSettings {
  std::string sandbox_id;
  std::string access_token;  // "" = none is asked for
  std::map<std::string, std::string> env;
  std::string user;
  std::string workdir;
  int64_t output_kbps = 0;  // of one command; 0 = unlimited
  // The processes are those of another sandbox: what identifies a machine must not be shared.
  bool reset_identity = false;
};

// An interface, so that the manager's rules are tested without any envd. A socket is one of
// engine::Engine::Dial(), not yet connected.
class Envd {
 public:
  virtual ~Envd() = default;
  virtual Task<Status> CheckHealth(UniqueFd socket) = 0;
  // `token`: the one that envd asks for now, "" if none; kUnauthenticated: it asks for another.
  virtual Task<Status> Init(UniqueFd socket, EnvdSettings settings, std::string token) = 0;
  // Of all commands, also of those that run already.
  virtual Task<Status> SetOutputRate(UniqueFd socket, int64_t kbps, std::string token) = 0;
};

// The one that speaks to port 49983.
Envd& RealEnvd();

}  // namespace caisson::sandbox

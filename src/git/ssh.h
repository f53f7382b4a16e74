// Repositories that are reached by SSH: how the program is called, and what its failures mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "git/repository.h"

namespace caisson::git {

// How the server authenticates itself and its peers.
struct SshAccess {
  std::string key_file;
  std::string known_hosts;
  std::chrono::milliseconds connect_timeout{30'000};

  bool configured() const { return !key_file.empty(); }
};
SshAccess SshAccessOf(const Config& config);
// Whether this process can use what the settings name; says what to do if not.
Status CheckSsh(const SshAccess& access);

// The argument vector that runs `service` ("git-upload-pack", "git-receive-pack") at the
// repository's host.
std::vector<std::string> SshCommand(const SshAccess& access, const Repository& repository,
                                    std::string_view service);
// "version=2" as a variable of the program, or nothing if it is not a version of the protocol.
std::vector<std::string> SshEnvironment(std::string_view git_protocol);

// What to answer when ssh ended without an answer of git's: a status and a sentence for people.
struct SshFailure {
  unsigned status = 502;
  std::string text;
};
SshFailure ExplainSsh(std::string_view host, std::string_view said);
// Why nobody connects to the repository's host: access.known_hosts does not name it.
std::optional<SshFailure> WhyNotSsh(const SshAccess& access, const Repository& repository);

}  // namespace caisson::git

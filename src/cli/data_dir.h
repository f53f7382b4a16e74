// The server's directory: its layout, its owners, and that only one server uses it.
//
//   api-key      the first key (0600)          engine/   root's: sandboxes (0700)
//   secret       tokens are made from it       db/       the server user's: SQLite's file (0700)
//   lock         held while a server runs      tls/      the local authority of --tls auto
#pragma once

#include <chrono>
#include <string>

#include "base/config.h"
#include "base/fd.h"
#include "cli/privileges.h"

namespace caisson::cli {

// Makes what is missing and gives it to its owner. Call as root.
Status PrepareDataDir(const Config& config, const ServerUser& user);

// Takes the lock; waits for an ending server for at most `patience`. The lock is this process's
// alone (the engine has its own) and lasts until the descriptor is closed.
Result<UniqueFd> LockDataDir(const Config& config, std::chrono::milliseconds patience);

// The directory and the file of a "sqlite:///path" URL; empty if the database is not a file.
struct DatabasePath {
  std::string dir;
  std::string file;
};
DatabasePath FindDatabase(const std::string& url);

}  // namespace caisson::cli

// Which server a command talks to, and as whom.
#pragma once

#include <map>
#include <string>

#include "base/error.h"

namespace caisson::cli {

using Environment = std::map<std::string, std::string>;

struct ServerAccess {
  std::string url;
  std::string api_key;  // "" if none was found
  std::string ca_file;  // the authority of a local server with --tls auto; "" if none was found
};

// `url`: what the command line says, or "". The address: that, else CAISSON_URL, else E2B_API_URL,
// else what `caisson login` has stored, else http://127.0.0.1:8000. The key: CAISSON_API_KEY, else
// E2B_API_KEY, else what `caisson login` has stored for this address, else the file api-key in
// CAISSON_DATA_DIR, ./.caisson or /var/lib/caisson.
ServerAccess FindServer(const Environment& environment, const std::string& url);

// What `caisson login` stores: config.toml in $XDG_CONFIG_HOME/caisson or ~/.config/caisson.
// "" if there is no home.
std::string LoginFile(const Environment& environment);
// Mode 0600, in a directory with mode 0700.
Status StoreLogin(const std::string& file, const std::string& url, const std::string& api_key);

}  // namespace caisson::cli

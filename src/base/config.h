// The settings of `caisson serve`: every limit with its default. Sources, later ones win:
// defaults < --config caisson.toml < CAISSON_* environment < command line.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/sandbox_settings.h"
#include "base/work_settings.h"

namespace caisson {

// Two rooms of it have files of their own; all settings share one list of names.
struct Config : SandboxSettings, WorkSettings {
  // ---- where ---------------------------------------------------------------
  std::string listen = "127.0.0.1:8000";     // HOST:PORT; port 0 takes a free one
  std::string data_dir = ".caisson";         // database, keys, disks of sandboxes
  std::string database_url;                  // default sqlite:///<data_dir>/db/caisson.db
  std::string template_dir;                  // default <data_dir>/templates
  std::string domain = "caisson.localhost";  // previews at PORT-ID.DOMAIN[:port]
  // The HTTP server runs as this user, without capabilities; "auto" is `caisson` if there is one,
  // else `nobody`, which other services may be, too.
  std::string user = "auto";

  // ---- TLS: "off", "auto" (a local CA made once in <data_dir>/tls), or "files" --------------
  std::string tls = "off";
  std::string tls_cert_file, tls_key_file;

  // ---- logging ---------------------------------------------------------------
  std::string log_level = "info";   // debug, info, warn, error
  std::string log_format = "auto";  // json, text, auto = text on a terminal

  // ---- HTTP limits -------------------------------------------------------------
  int64_t http_max_connections = 10'000;
  int64_t http_max_per_peer = 1'000;  // from one address but this machine's own; 0 = unlimited
  int64_t http_max_header_bytes = 64 << 10;
  int64_t http_max_body_bytes = 4 << 20;    // of control-plane requests; file bodies have no cap
  int64_t http_header_timeout_ms = 20'000;  // from the first byte to the end of the header
  int64_t http_idle_timeout_ms = 620'000;   // keep-alive without a request
  int64_t http_body_stall_timeout_ms = 60'000;  // a body that stops coming or going
  int64_t shutdown_grace_ms = 5'000;            // for requests in flight when stopping

  // Where a setting comes from that is not the default: "file", "environment", "option".
  std::map<std::string, std::string, std::less<>> sources;
};

// One setting, to be shown.
struct ShownSetting {
  std::string name;
  std::string value, standard;  // SECURITY: of a secret only "set" or ""
  std::string source = "default";
  bool secret = false;
};

// Reads a TOML file of fields of Config. Unknown keys and wrong types are errors with their line.
Status LoadConfigFile(Config& config, const std::string& path);
// Sets one field by name, as the environment (CAISSON_DATA_DIR) and `--set key=value` do.
// Sizes and durations are plain integers in the unit of the field's name.
Status SetConfigField(Config& config, std::string_view name, std::string_view value);
// Applies every CAISSON_<FIELD> variable. Unknown CAISSON_ variables are ignored.
Status ApplyEnvironment(Config& config, const std::map<std::string, std::string>& environment);
// Fills the derived defaults and checks ranges; call once after all sources.
Status FinishConfig(Config& config);
// The numbers and switches by name, to be shown: none of them is a secret, texts may be.
std::map<std::string, int64_t> ConfigNumbers(const Config& config);
// All of them, in the order of Config, but those that only tests have.
std::vector<ShownSetting> ShowConfig(const Config& config);

}  // namespace caisson

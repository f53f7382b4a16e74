// What envd was told about its sandbox: at boot, and again by POST /init after a resume.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "envd/limits.h"
#include "envd/user.h"

namespace caisson::envd {

using EnvVars = std::map<std::string, std::string>;

struct Settings {
  std::string sandbox_id;
  std::string template_id;
  std::string access_token;  // "" = open to everybody who can connect
  EnvVars env_vars;          // given at creation
  std::string default_user = "user";
  std::string default_workdir;  // "" = the user's home
  uint16_t port = 49983;
  Limits limits;

  // The variables of every process: `env_vars`, then envd's own, which a creator cannot override.
  EnvVars GlobalEnv() const;
};

// Reads the boot document: {"sandboxId","templateId","accessToken","envVars","defaultUser",
// "defaultWorkdir","port","limits":{name: number}}; everything is optional. Errors name the field.
Result<Settings> ParseSettings(std::string_view json_text);

}  // namespace caisson::envd

#include "cli/server_access.h"

#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace caisson::cli {
namespace {

std::string FirstOf(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (auto it = environment.find(name); it != environment.end() && !it->second.empty())
      return it->second;
  return "";
}

// Where servers of this machine keep their data, as far as it can be known.
std::vector<std::string> DataDirs(const Environment& environment) {
  std::vector<std::string> dirs{".caisson", "/var/lib/caisson"};
  if (std::string dir = FirstOf(environment, {"CAISSON_DATA_DIR"}); !dir.empty())
    dirs.insert(dirs.begin(), dir);
  return dirs;
}

// Only what StoreLogin() writes: lines of NAME = "VALUE".
std::map<std::string, std::string> ReadLogin(const Environment& environment) {
  std::map<std::string, std::string> login;
  std::string file = LoginFile(environment);
  auto text = file.empty() ? Result<std::string>("") : ReadFile(file, 64 << 10);
  if (!text) return login;
  for (std::string_view line : Split(*text, '\n')) {
    size_t equals = line.find('=');
    if (equals == std::string_view::npos || Trim(line).starts_with('#')) continue;
    std::string_view value = Trim(line.substr(equals + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      login[std::string(Trim(line.substr(0, equals)))] = value.substr(1, value.size() - 2);
  }
  return login;
}

bool IsPlain(std::string_view text) {
  return text.find_first_of("\"\\\n\r") == std::string_view::npos;
}

}  // namespace

ServerAccess FindServer(const Environment& environment, const std::string& url) {
  auto login = ReadLogin(environment);
  ServerAccess found{.url = url};
  if (found.url.empty()) found.url = FirstOf(environment, {"CAISSON_URL", "E2B_API_URL"});
  if (found.url.empty()) found.url = login["url"];
  if (found.url.empty()) found.url = "http://127.0.0.1:8000";
  found.api_key = FirstOf(environment, {"CAISSON_API_KEY", "E2B_API_KEY"});
  // SECURITY: a stored key goes to the server it was stored for, and to no other.
  if (found.api_key.empty() && found.url == login["url"]) found.api_key = login["api_key"];
  for (const std::string& dir : DataDirs(environment)) {
    if (found.api_key.empty())
      if (auto text = ReadFile(dir + "/api-key", 4096)) found.api_key = Trim(*text);
    if (found.ca_file.empty())
      if (std::string file = dir + "/tls/ca.pem"; ReadFile(file, 1 << 20)) found.ca_file = file;
  }
  return found;
}

std::string LoginFile(const Environment& environment) {
  if (std::string dir = FirstOf(environment, {"XDG_CONFIG_HOME"}); !dir.empty())
    return dir + "/caisson/config.toml";
  std::string home = FirstOf(environment, {"HOME"});
  return home.empty() ? "" : home + "/.config/caisson/config.toml";
}

Status StoreLogin(const std::string& file, const std::string& url, const std::string& api_key) {
  if (file.empty())
    return Fail(Code::kFailedPrecondition, "there is no home directory to store the login in");
  if (!IsPlain(url) || !IsPlain(api_key))
    return Fail(Code::kInvalidArgument, "the address or the key holds characters that none has");
  std::error_code ec;
  std::filesystem::path dir = std::filesystem::path(file).parent_path();
  std::filesystem::create_directories(dir, ec);
  std::filesystem::permissions(dir, std::filesystem::perms::owner_all, ec);
  return WriteFileAtomic(file, fmt::format("url = \"{}\"\napi_key = \"{}\"\n", url, api_key), 0600);
}

}  // namespace caisson::cli

// What the program was asked to do, as plain values. CLI11 stays inside command_line.cc.
#pragma once

#include <map>
#include <string>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "base/config.h"

namespace caisson::cli {

using Environment = std::map<std::string, std::string>;
using StringMap = std::map<std::string, std::string>;

struct ServeCommand {
  Config config;
};
struct DoctorCommand {
  Config config;
  bool json = false;
};
struct VersionCommand {};

// ---- caisson key ... --------------------------------------------------------------
struct AddKey {
  std::string name;
  StringMap limits;  // by the names of store::KeyLimits
};
struct ListKeys {};
struct LimitKey {
  std::string id;
  StringMap limits;
};
struct RevokeKey {
  std::string id;
};
struct KeyCommand {
  Config config;
  bool json = false;
  std::variant<AddKey, ListKeys, LimitKey, RevokeKey> action;
};

// ---- caisson sandbox ... ----------------------------------------------------------
struct CreateSandbox {
  std::string template_name = "base";
  int64_t timeout_s = 300;
  StringMap env;
  StringMap metadata;
  bool internet = true;
  bool auto_pause = false;
  bool auto_resume = false;
};
struct ListSandboxes {};
struct ShowSandbox {
  std::string id;
};
struct ExecInSandbox {
  std::string id;
  std::string user;  // "" = the template's default
  std::string cwd;   // "" = the user's home
  StringMap env;
  std::vector<std::string> command;
};
struct KillSandboxes {
  std::vector<std::string> ids;
  bool all = false;
};
struct ShowLogs {
  std::string id;
};
struct ShowTimeline {
  std::string id;
};
struct SaveDiagnostics {
  std::string id;
  std::string file;  // "" = standard output
};
struct ShowMetrics {
  std::string id;
};
struct ShowUrl {
  std::string id;
  uint16_t port = 0;
};
struct PauseSandbox {
  std::string id;
  bool memory = true;
};
struct ResumeSandbox {
  std::string id;
  int64_t timeout_s = 300;
  bool memory = true;
};
struct ForkSandbox {
  std::string id;
  int64_t timeout_s = 300;
  int64_t count = 1;
};
struct MakeSnapshot {
  std::string id;
  std::string name;  // "" = none
};
// ---- caisson snapshot ..., caisson drain ----------------------------------------------
struct ListSnapshots {
  std::string sandbox_id;  // "" = of all
};
struct DeleteSnapshots {
  std::vector<std::string> ids;
};
struct DrainServer {
  bool end = false;
};
using SandboxAction =
    std::variant<CreateSandbox, ListSandboxes, ShowSandbox, ExecInSandbox, KillSandboxes, ShowLogs,
                 ShowTimeline, SaveDiagnostics, ShowMetrics, ShowUrl, PauseSandbox, ResumeSandbox,
                 ForkSandbox, MakeSnapshot, ListSnapshots, DeleteSnapshots, DrainServer>;
// Something a server is asked to do.
struct SandboxCommand {
  std::string url;      // of the server
  std::string api_key;  // "" if none was found
  std::string ca_file;  // the authority of a local server with --tls auto; "" if none was found
  bool json = false;
  SandboxAction action;
};

using Command =
    std::variant<ServeCommand, SandboxCommand, KeyCommand, DoctorCommand, VersionCommand>;

// The program ends here: it was asked for help, or the command line makes no sense.
struct Exit {
  int status = 0;
  std::string text;  // for stdout if status is 0, else for stderr
};

tl::expected<Command, Exit> ParseCommandLine(int argc, const char* const* argv,
                                             const Environment& environment);

}  // namespace caisson::cli

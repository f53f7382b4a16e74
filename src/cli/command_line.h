// What the program was asked to do, as plain values. CLI11 stays inside command_line.cc.
#pragma once

#include <map>
#include <string>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "base/config.h"
#include "cli/build_action.h"
#include "cli/server_access.h"
#include "cli/session_action.h"
#include "cli/work_action.h"

namespace caisson::cli {

// Of this process.
Environment ReadEnvironment();
using StringMap = std::map<std::string, std::string>;

struct ServeCommand {
  Config config;
};
struct DoctorCommand {
  Config config;
  bool json = false;
};
struct VersionCommand {};
struct DatabaseCommand {
  Config config;
  bool json = false;
  enum class Action { kStatus, kMigrate, kRollback, kBackup } action = Action::kStatus;
  int64_t version = 0;  // for kRollback
  std::string file;     // for kBackup
};

// ---- caisson key ..., caisson user ..., caisson github-token ..., caisson login ---------
struct AddKey {
  std::string name;
  std::string user;   // name or id; "" = a user of its own, unless it is `mine`
  bool mine = false;  // of the caller
  StringMap limits;   // by the names of store::KeyLimits
};
struct ListKeys {};
struct LimitKey {
  std::string id;
  StringMap limits;
};
struct RevokeKey {
  std::string id;
};
struct AddUser {
  std::string name;
  std::string role;
  bool password = false;  // read one
};
struct ListUsers {};
struct SetUserPassword {
  std::string user;  // name or id
};
struct SetUserRole {
  std::string user;
  std::string role;
};
struct DisableUser {
  std::string user;
  bool disabled = true;
};
struct LogIn {
  std::string file;  // where it is stored
};
struct SetGithubToken {};
struct ShowGithubToken {};
struct DeleteGithubToken {};
using AccountAction = std::variant<AddKey, ListKeys, LimitKey, RevokeKey, AddUser, ListUsers,
                                   SetUserPassword, SetUserRole, DisableUser, LogIn, SetGithubToken,
                                   ShowGithubToken, DeleteGithubToken>;
struct AccountCommand {
  ServerAccess server;
  bool json = false;
  AccountAction action;
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
struct ShellInSandbox {
  std::string id;
  std::string user;  // "" = the template's default
  std::string cwd;   // "" = the user's home
  StringMap env;
};
// A sandbox for one command, which ends with it.
struct RunInSandbox {
  CreateSandbox create;
  ExecInSandbox exec;              // its id is not known yet
  std::vector<std::string> files;  // "LOCAL" or "LOCAL:PATH": they are there before the command
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
    std::variant<CreateSandbox, ListSandboxes, ShowSandbox, ExecInSandbox, ShellInSandbox,
                 RunInSandbox, KillSandboxes, ShowLogs, ShowTimeline, SaveDiagnostics, ShowMetrics,
                 ShowUrl, PauseSandbox, ResumeSandbox, ForkSandbox, MakeSnapshot, ListSnapshots,
                 DeleteSnapshots, DrainServer>;
// Something a server is asked to do.
struct SandboxCommand {
  ServerAccess server;
  bool json = false;
  SandboxAction action;
};

using Command =
    std::variant<ServeCommand, SandboxCommand, AccountCommand, WorkCommand, SessionCommand,
                 BuildCommand, DatabaseCommand, DoctorCommand, VersionCommand>;

// The program ends here: it was asked for help, or the command line makes no sense.
struct Exit {
  int status = 0;
  std::string text;  // for stdout if status is 0, else for stderr
};

tl::expected<Command, Exit> ParseCommandLine(int argc, const char* const* argv,
                                             const Environment& environment);

}  // namespace caisson::cli

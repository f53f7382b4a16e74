#include "cli/account_options.h"

namespace caisson::cli {
namespace {

constexpr const char* kKeyFooter =
    "Works at once: the server need not be started again. Limits: rate_limit (requests per "
    "second),\n"
    "rate_burst, create_rate_limit (sandboxes per minute), max_sandboxes (running at once); of "
    "one\n"
    "sandbox max_sandbox_cpus, max_sandbox_memory_mb, max_sandbox_disk_mb, max_sandbox_pids,\n"
    "max_sandbox_open_files, max_sandbox_output_kbps, max_timeout_s (longest life). 0 is no "
    "limit,\n"
    "\"default\" the server's.\n"
    "\n"
    "Examples:\n"
    "  caisson key add ci --limit max_sandboxes=20 --limit rate_limit=50\n"
    "  caisson key add laptop --user mia\n"
    "  caisson key limit ID max_sandboxes=50 rate_limit=default max_sandbox_memory_mb=2048";
constexpr const char* kUserFooter =
    "Roles: admin (everything), member (things of their own), viewer (looks only). Passwords are\n"
    "read from standard input, never from the command line.\n"
    "\n"
    "Examples:\n"
    "  caisson user add mia --password\n"
    "  pass show mia | caisson user passwd mia";
constexpr const char* kTokenFooter =
    "Where pull_request_identity is \"user\", pull requests of your tasks are opened with your "
    "token.\n"
    "It is read from standard input, never from the command line, kept sealed, and never shown.\n"
    "\n"
    "Example:\n"
    "  gh auth token | caisson github-token set";
constexpr const char* kLoginFooter =
    "Reads an API key from standard input, asks the server whether it is good, and stores both in\n"
    "~/.config/caisson/config.toml (mode 0600) for the other commands.";

}  // namespace

Result<StringMap> ParsePairs(const std::vector<std::string>& pairs, std::string_view option) {
  StringMap map;
  for (const std::string& pair : pairs) {
    size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      return Fail(Code::kInvalidArgument, "{}: '{}' is not NAME=VALUE", option, pair);
    map[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return map;
}

void AccountOptions::AddCommon(CLI::App& app, const char* footer) {
  app.fallthrough();  // --url and --json may also follow the sub-command
  app.footer(footer);
  app.add_option("--url", url_, "the server")->type_name("URL");
  app.add_flag("--json", json_, "print JSON, as the server answers");
}

void AccountOptions::Choose(CLI::App& app, AccountAction action) {
  app.callback([this, action] { action_ = action; });
}

CLI::App& AccountOptions::AddNamed(CLI::App& app, const char* name, const char* help,
                                   const char* what, AccountAction action) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->add_option(what, name_)->required();
  Choose(*sub, std::move(action));
  return *sub;
}

void AccountOptions::AddKeysTo(CLI::App& app) {
  AddCommon(app, kKeyFooter);
  app.require_subcommand(1);
  CLI::App& add = AddNamed(app, "add", "make a key and print it, once", "NAME", AddKey{});
  add.add_option("--user", user_, "whose key it is [a user of its own]")->type_name("USER");
  add.add_flag("--mine", mine_, "it is yours");
  add.add_option("--limit", limits_, "what it may do; may be repeated")
      ->type_name("NAME=NUMBER")
      ->allow_extra_args(false);
  Choose(*app.add_subcommand("list", "all keys but the server's first"), ListKeys{});
  AddNamed(app, "limit", "change what a key may do", "ID", LimitKey{})
      .add_option("LIMIT", limits_, "NAME=NUMBER")
      ->required();
  AddNamed(app, "revoke", "make a key invalid for ever", "ID", RevokeKey{});
}

void AccountOptions::AddUsersTo(CLI::App& app) {
  AddCommon(app, kUserFooter);
  app.require_subcommand(1);
  CLI::App& add = AddNamed(app, "add", "add a user and print the id", "NAME", AddUser{});
  add.add_option("--role", role_, "admin, member or viewer [member]")->type_name("ROLE");
  add.add_flag("--password", password_, "read a password; without one there is no login");
  Choose(*app.add_subcommand("list", "all users"), ListUsers{});
  AddNamed(app, "passwd", "set a password; ends their logins", "USER", SetUserPassword{});
  AddNamed(app, "role", "change what a user may do", "USER", SetUserRole{})
      .add_option("ROLE", role_, "admin, member or viewer")
      ->required();
  AddNamed(app, "disable", "refuse their logins and keys", "USER", DisableUser{});
  AddNamed(app, "enable", "let a disabled user in again", "USER",
           DisableUser{.user = "", .disabled = false});
}

void AccountOptions::AddGithubTokensTo(CLI::App& app) {
  AddCommon(app, kTokenFooter);
  app.require_subcommand(1);
  Choose(*app.add_subcommand("set", "give the server a token, in the place of the one before"),
         SetGithubToken{});
  Choose(*app.add_subcommand("show", "whether it has one, and whose"), ShowGithubToken{});
  Choose(*app.add_subcommand("delete", "take it away"), DeleteGithubToken{});
}

void AccountOptions::AddLoginTo(CLI::App& app) {
  AddCommon(app, kLoginFooter);
  Choose(app, LogIn{});
}

Result<AccountCommand> AccountOptions::Build(const Environment& environment) {
  AccountCommand command{.server = FindServer(environment, url_), .json = json_, .action = action_};
  TRY_ASSIGN(StringMap limits, ParsePairs(limits_, "limit"));
  if (auto* key = std::get_if<AddKey>(&command.action)) *key = {name_, user_, mine_, limits};
  if (auto* limit = std::get_if<LimitKey>(&command.action)) *limit = {name_, limits};
  if (auto* revoke = std::get_if<RevokeKey>(&command.action)) revoke->id = name_;
  if (auto* user = std::get_if<AddUser>(&command.action)) *user = {name_, role_, password_};
  if (auto* password = std::get_if<SetUserPassword>(&command.action)) password->user = name_;
  if (auto* role = std::get_if<SetUserRole>(&command.action)) *role = {name_, role_};
  if (auto* disable = std::get_if<DisableUser>(&command.action)) disable->user = name_;
  if (auto* login = std::get_if<LogIn>(&command.action)) login->file = LoginFile(environment);
  return command;
}

}  // namespace caisson::cli

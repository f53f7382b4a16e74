// CLI11 takes seconds to compile: it is included here and in *_options.h only.
#include "cli/command_line.h"

#include <CLI/CLI.hpp>

#include "cli/account_options.h"
#include "cli/build_options.h"
#include "cli/session_options.h"
#include "cli/version.h"
#include "cli/work_options.h"

namespace caisson::cli {
namespace {

constexpr int kUsage = 2;

constexpr const char* kAbout =
    "Caisson gives every coding agent its own isolated machine: a sandbox server that E2B SDKs can "
    "use, on your own Linux host.";
constexpr const char* kFooter =
    "A first minute:\n"
    "  sudo caisson serve                       start the server; prints the API key\n"
    "  caisson sandbox create                   make a sandbox; prints its id\n"
    "  caisson sandbox exec ID -- uname -a      run a command in it\n"
    "  caisson sandbox kill ID                  end it\n"
    "\n"
    "caisson COMMAND --help tells more about each.";
constexpr const char* kServeFooter =
    "Settings come from, later ones win: defaults, the --config file (TOML, the same names),\n"
    "CAISSON_<NAME> in the environment, options, --set. All of them are listed in\n"
    "docs/operations.md.\n"
    "\n"
    "Examples:\n"
    "  sudo caisson serve\n"
    "  sudo caisson serve --listen 0.0.0.0:443 --tls auto --domain boxes.example\n"
    "  sudo caisson serve --data-dir /var/lib/caisson --set max_sandboxes=200";
constexpr const char* kSandboxFooter =
    "The server is --url, else CAISSON_URL, else E2B_API_URL, else that of `caisson login`, else\n"
    "http://127.0.0.1:8000. The key is CAISSON_API_KEY, else E2B_API_KEY, else that of `caisson\n"
    "login` for this server, else the file api-key in CAISSON_DATA_DIR, ./.caisson or\n"
    "/var/lib/caisson.\n"
    "\n"
    "Exit status: 0 done; 1 the server refused or is not there; 2 wrong usage. `exec`, `run` "
    "and `shell`\n"
    "pass the command's own status on (128 + N if signal N ended it) and use 125 for failures of "
    "their own.";
constexpr const char* kExecFooter =
    "What the command prints comes out here, and its standard input is this one's unless that is "
    "a\n"
    "terminal. Ctrl-C ends the command.\n"
    "\n"
    "Examples:\n"
    "  caisson sandbox exec ID -- python3 -c 'print(1+1)'\n"
    "  tar c src | caisson sandbox exec ID --cwd /tmp -- tar x";

constexpr const char* kShellFooter =
    "A login shell at a terminal of its own, as large as this one. Every key goes to it, also "
    "Ctrl-C;\n"
    "`exit` or Ctrl-D leaves. It ends with this command. Without a terminal: `caisson sandbox "
    "exec`.";

constexpr const char* kRunFooter =
    "A sandbox is made, gets the files (without a PATH into the user's home, under their own "
    "names),\n"
    "runs the command as `exec` does, and is ended, whatever happens.\n"
    "\n"
    "Example:\n"
    "  caisson sandbox run --file train.py -- python3 train.py";

std::string Lookup(const Environment& environment, const std::string& name) {
  auto it = environment.find(name);
  return it == environment.end() ? "" : it->second;
}

constexpr const char* kDatabaseFooter =
    "A server migrates its database when it starts; this is for looking first, and for going back\n"
    "to an older caisson: stop the server, make a backup, roll back, start the older one.\n"
    "\n"
    "Examples:\n"
    "  sudo caisson database status\n"
    "  sudo caisson database backup /backup/caisson.db\n"
    "  sudo caisson database rollback --to 3";

// The settings a sub-command takes: named options for the common ones, --set for all.
class ConfigOptions {
 public:
  void AddTo(CLI::App& app) {
    app.add_option("--config", file_, "read settings from this TOML file")->type_name("FILE");
    Add(app, "--data-dir", "data_dir", "DIR", "database, keys and disks of sandboxes [.caisson]");
    app.add_option("--set", sets_, "any setting; may be repeated")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);
  }
  void AddDatabaseTo(CLI::App& app) {
    Add(app, "--database-url", "database_url", "URL",
        "sqlite:///PATH or postgresql://... [DATA_DIR/db/caisson.db]");
  }
  void AddServerOptionsTo(CLI::App& app) {
    Add(app, "--listen", "listen", "IP:PORT", "where to listen [127.0.0.1:8000]");
    Add(app, "--domain", "domain", "DOMAIN", "previews are at PORT-ID.DOMAIN [caisson.localhost]");
    AddDatabaseTo(app);
    Add(app, "--tls", "tls", "off|auto|files", "auto makes a local authority once [off]");
    Add(app, "--tls-cert", "tls_cert_file", "FILE", "certificate chain (PEM) for --tls files");
    Add(app, "--tls-key", "tls_key_file", "FILE", "private key (PEM) for --tls files");
  }

  Result<Config> Build(const Environment& environment) const {
    Config config;
    std::string file = file_.empty() ? Lookup(environment, "CAISSON_CONFIG") : file_;
    if (!file.empty()) TRY(LoadConfigFile(config, file));
    TRY(ApplyEnvironment(config, environment));
    for (const auto& [field, value] : values_)
      if (!value.empty()) TRY(SetConfigField(config, field, value));
    TRY_ASSIGN(StringMap sets, ParsePairs(sets_, "--set"));
    for (const auto& [field, value] : sets) TRY(SetConfigField(config, field, value));
    TRY(FinishConfig(config));
    return config;
  }

 private:
  void Add(CLI::App& app, const char* option, const char* field, const char* type,
           const char* help) {
    app.add_option(option, values_[field], help)
        ->type_name(type)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }

  std::string file_;
  std::vector<std::string> sets_;
  StringMap values_;  // by field
};

// caisson sandbox ...
class SandboxOptions {
 public:
  void AddTo(CLI::App& app) {
    AddCommon(app);
    app.require_subcommand(1);
    AddCreate(*app.add_subcommand("create", "make a sandbox and print its id"));
    AddList(*app.add_subcommand("list", "all sandboxes of your key"));
    AddOne<ShowSandbox>(app, "info", "everything about one sandbox");
    AddExec(*app.add_subcommand("exec", "run a command in a sandbox"));
    AddShell(*app.add_subcommand("shell", "work in a sandbox from this terminal"));
    AddRun(*app.add_subcommand("run", "run a command in a sandbox of its own, which then ends"));
    AddKill(*app.add_subcommand("kill", "end sandboxes"));
    AddOne<ShowLogs>(app, "logs", "what happened to a sandbox");
    AddOne<ShowTimeline>(app, "timeline", "what happened to a sandbox and why, also after its end");
    AddDiagnostics(*app.add_subcommand("diagnostics", "everything to find out what went wrong"));
    AddOne<ShowMetrics>(app, "metrics", "CPU, memory and disk of a sandbox over time");
    AddUrl(*app.add_subcommand("url", "the address of a server in a sandbox"));
    AddPause(*app.add_subcommand("pause", "save a sandbox and stop it"));
    AddResume(*app.add_subcommand("resume", "continue a paused sandbox"));
    AddSnapshot(*app.add_subcommand("snapshot", "copy a running sandbox, to make others from it"));
    AddFork(*app.add_subcommand("fork", "make running copies of a running sandbox"));
  }
  // caisson snapshot ...
  void AddSnapshotsTo(CLI::App& app) {
    AddCommon(app);
    app.require_subcommand(1);
    CLI::App* list = app.add_subcommand("list", "all snapshots of your key");
    list->add_option("--sandbox", id_, "only those of this sandbox")->type_name("ID");
    Choose(*list, ListSnapshots{});
    CLI::App* remove = app.add_subcommand("delete", "delete snapshots");
    remove->add_option("ID", delete_.ids, "the snapshots")->required();
    Choose(*remove, DeleteSnapshots{});
  }
  // caisson drain
  void AddDrainTo(CLI::App& app) {
    AddCommon(app);
    app.add_flag("--end", drain_.end, "let sandboxes start again");
    Choose(app, DrainServer{});
  }

  Result<SandboxCommand> Build(const Environment& environment) {
    TRY(Fill());
    return SandboxCommand{
        .server = FindServer(environment, url_), .json = json_, .action = action_};
  }

 private:
  // Puts what was read from the command line into the action that was chosen.
  Status Fill() {
    if (auto* create = std::get_if<CreateSandbox>(&action_)) {
      *create = create_;
      TRY_ASSIGN(create->env, ParsePairs(env_, "-e"));
      TRY_ASSIGN(create->metadata, ParsePairs(metadata_, "--metadata"));
      create->internet = !no_internet_;
    } else if (auto* exec = std::get_if<ExecInSandbox>(&action_)) {
      *exec = exec_;
      exec->id = id_;
      TRY_ASSIGN(exec->env, ParsePairs(env_, "-e"));
    } else if (auto* shell = std::get_if<ShellInSandbox>(&action_)) {
      *shell = {.id = id_, .user = exec_.user, .cwd = exec_.cwd};
      TRY_ASSIGN(shell->env, ParsePairs(env_, "-e"));
    } else if (auto* run = std::get_if<RunInSandbox>(&action_)) {
      *run = {.create = create_, .exec = exec_, .files = files_};
      TRY_ASSIGN(run->exec.env, ParsePairs(env_, "-e"));
      run->create.internet = !no_internet_;
    } else if (auto* kill = std::get_if<KillSandboxes>(&action_)) {
      *kill = kill_;
      if (kill->all != kill->ids.empty())
        return Fail(Code::kInvalidArgument, "kill: name sandboxes, or say --all");
    } else if (auto* url = std::get_if<ShowUrl>(&action_)) {
      *url = {id_, port_};
    } else if (auto* info = std::get_if<ShowSandbox>(&action_)) {
      info->id = id_;
    } else if (auto* logs = std::get_if<ShowLogs>(&action_)) {
      logs->id = id_;
    } else if (auto* timeline = std::get_if<ShowTimeline>(&action_)) {
      timeline->id = id_;
    } else if (auto* diagnostics = std::get_if<SaveDiagnostics>(&action_)) {
      *diagnostics = {id_, file_};
    } else if (auto* metrics = std::get_if<ShowMetrics>(&action_)) {
      metrics->id = id_;
    } else if (auto* pause = std::get_if<PauseSandbox>(&action_)) {
      *pause = {id_, !without_memory_};
    } else if (auto* resume = std::get_if<ResumeSandbox>(&action_)) {
      *resume = {id_, timeout_s_, !without_memory_};
    } else if (auto* fork = std::get_if<ForkSandbox>(&action_)) {
      *fork = {id_, timeout_s_, count_};
    } else if (auto* snapshot = std::get_if<MakeSnapshot>(&action_)) {
      *snapshot = {id_, name_};
    } else if (auto* list = std::get_if<ListSnapshots>(&action_)) {
      list->sandbox_id = id_;
    } else if (auto* remove = std::get_if<DeleteSnapshots>(&action_)) {
      *remove = delete_;
    } else if (auto* drain = std::get_if<DrainServer>(&action_)) {
      *drain = drain_;
    }
    return {};
  }
  void AddCommon(CLI::App& app) {
    app.fallthrough();  // --url and --json may also follow the sub-command
    app.footer(kSandboxFooter);
    app.add_option("--url", url_, "the server")->type_name("URL");
    app.add_flag("--json", json_, "print JSON, as the server answers");
  }
  void Choose(CLI::App& app, SandboxAction action) {
    app.callback([this, action] { action_ = action; });
  }
  void AddList(CLI::App& app) {
    app.alias("ls");
    Choose(app, ListSandboxes{});
  }
  template <class Action>
  void AddOne(CLI::App& app, const char* name, const char* help) {
    CLI::App* sub = app.add_subcommand(name, help);
    AddId(*sub);
    Choose(*sub, Action{});
  }
  void AddId(CLI::App& app) { app.add_option("ID", id_, "the sandbox")->required(); }
  void AddEnv(CLI::App& app, const std::string& help) {
    app.add_option("-e,--env", env_, help)->type_name("NAME=VALUE")->allow_extra_args(false);
  }

  void AddFresh(CLI::App& app) {
    app.add_option("--template", create_.template_name, "what it starts from [base]")
        ->type_name("NAME");
    app.add_option("--timeout", create_.timeout_s, "seconds until it ends [300]")
        ->type_name("SECONDS");
    app.add_flag("--no-internet", no_internet_, "it reaches nothing outside itself");
  }
  void AddCreate(CLI::App& app) {
    AddFresh(app);
    AddEnv(app, "variable of every process in it; may be repeated");
    app.add_option("--metadata", metadata_, "your own label; may be repeated")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);
    app.add_flag("--auto-pause", create_.auto_pause, "paused, not killed, when its time is over");
    app.add_flag("--auto-resume", create_.auto_resume, "resumed by traffic when it is paused");
    Choose(app, CreateSandbox{});
  }
  void AddExec(CLI::App& app) {
    app.footer(kExecFooter);
    AddId(app);
    AddCommand(app);
    Choose(app, ExecInSandbox{});
  }
  void AddShell(CLI::App& app) {
    app.footer(kShellFooter);
    AddId(app);
    AddSurroundings(app, "shell");
    Choose(app, ShellInSandbox{});
  }
  void AddRun(CLI::App& app) {
    app.footer(kRunFooter);
    AddFresh(app);
    app.add_option("--file", files_, "a file of this machine that it gets; may be repeated")
        ->type_name("LOCAL[:PATH]")
        ->allow_extra_args(false);
    AddCommand(app);
    Choose(app, RunInSandbox{});
  }
  void AddSurroundings(CLI::App& app, const std::string& what) {
    app.add_option("--user", exec_.user, "the Linux user [the template's]")->type_name("NAME");
    app.add_option("--cwd", exec_.cwd, "where to run it [the user's home]")->type_name("DIR");
    AddEnv(app, "variable of the " + what + "; may be repeated");
  }
  void AddCommand(CLI::App& app) {
    AddSurroundings(app, "command");
    app.add_option("COMMAND", exec_.command, "after --: the program and its arguments")->required();
  }
  void AddKill(CLI::App& app) {
    app.add_option("ID", kill_.ids, "the sandboxes");
    app.add_flag("--all", kill_.all, "all sandboxes of your key");
    Choose(app, KillSandboxes{});
  }
  void AddDiagnostics(CLI::App& app) {
    AddId(app);
    app.add_option("-o,--output", file_, "write it there instead of printing it")
        ->type_name("FILE");
    Choose(app, SaveDiagnostics{});
  }
  void AddUrl(CLI::App& app) {
    AddId(app);
    app.add_option("PORT", port_, "the port it listens on")
        ->required()
        ->check(CLI::Range(1, 65535));
    Choose(app, ShowUrl{});
  }

  void AddPause(CLI::App& app) {
    AddId(app);
    app.add_flag("--files-only", without_memory_, "keep its files, let its processes go");
    Choose(app, PauseSandbox{});
  }
  void AddResume(CLI::App& app) {
    AddId(app);
    AddTimeout(app);
    app.add_flag("--reboot", without_memory_, "boot it anew from its files");
    Choose(app, ResumeSandbox{});
  }
  void AddFork(CLI::App& app) {
    AddId(app);
    AddTimeout(app);
    app.add_option("--count", count_, "how many [1]")->type_name("NUMBER");
    Choose(app, ForkSandbox{});
  }
  void AddSnapshot(CLI::App& app) {
    AddId(app);
    app.add_option("--name", name_, "a name to use instead of its id")->type_name("NAME[:TAG]");
    Choose(app, MakeSnapshot{});
  }
  void AddTimeout(CLI::App& app) {
    app.add_option("--timeout", timeout_s_, "seconds until it ends [300]")->type_name("SECONDS");
  }

  std::string url_;
  bool json_ = false;
  SandboxAction action_;
  CreateSandbox create_;
  ExecInSandbox exec_;
  KillSandboxes kill_;
  std::string id_;
  std::string file_;
  uint16_t port_ = 0;
  std::vector<std::string> env_;
  std::vector<std::string> metadata_;
  std::vector<std::string> files_;
  bool no_internet_ = false;
  bool without_memory_ = false;
  int64_t timeout_s_ = 300;
  int64_t count_ = 1;
  std::string name_;
  DeleteSnapshots delete_;
  DrainServer drain_;
};

// caisson database ...
class DatabaseOptions {
 public:
  void AddTo(CLI::App& app) {
    app.require_subcommand(1);
    app.fallthrough();
    app.footer(kDatabaseFooter);
    config_.AddDatabaseTo(app);
    config_.AddTo(app);
    app.add_flag("--json", command_.json, "print JSON");
    using Action = DatabaseCommand::Action;
    app.add_subcommand("status", "every step of the schema, and which are applied");
    app.add_subcommand("migrate", "apply the missing steps")->callback([this] {
      command_.action = Action::kMigrate;
    });
    CLI::App* rollback = app.add_subcommand("rollback", "undo steps; what they hold is lost");
    rollback->add_option("--to", command_.version, "the last step that stays; 0 is none")
        ->type_name("NUMBER")
        ->required();
    rollback->callback([this] { command_.action = Action::kRollback; });
    CLI::App* backup = app.add_subcommand("backup", "copy it while it is in use (SQLite)");
    backup->add_option("file", command_.file, "a new file")->type_name("FILE")->required();
    backup->callback([this] { command_.action = Action::kBackup; });
  }

  Result<DatabaseCommand> Build(const Environment& environment) {
    TRY_ASSIGN(command_.config, config_.Build(environment));
    return command_;
  }

 private:
  ConfigOptions config_;
  DatabaseCommand command_;
};

Exit FromCli(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out, err;
  int status = app.exit(error, out, err);
  if (status == 0) return {0, out.str()};
  return {kUsage, "caisson: " + err.str()};
}

template <class T>
tl::expected<T, Exit> OrUsage(Result<T> result) {
  if (result) return std::move(*result);
  return tl::unexpected(Exit{kUsage, "caisson: " + result.error().message() + "\n"});
}

// Not converted from one expected to the other: tl::expected leaks a value made by default.
template <class T>
tl::expected<Command, Exit> Chosen(Result<T> result) {
  TRY_ASSIGN(T command, OrUsage(std::move(result)));
  return command;
}

}  // namespace

Environment ReadEnvironment() {
  Environment environment;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    if (size_t equals = text.find('='); equals != std::string_view::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

tl::expected<Command, Exit> ParseCommandLine(int argc, const char* const* argv,
                                             const Environment& environment) {
  CLI::App app(kAbout, "caisson");
  app.require_subcommand(1);
  app.footer(kFooter);
  app.set_version_flag("--version", VersionText());
  app.get_formatter()->column_width(34);

  ConfigOptions serve_options, doctor_options;
  SandboxOptions sandbox_options, snapshot_options, drain_options;
  AccountOptions key_options, user_options, token_options, login_options;
  WorkOptions agent_options, task_options, run_options;
  SessionOptions session_options;
  BuildOptions build_options;
  DatabaseOptions database_options;
  bool doctor_json = false;
  CLI::App* serve = app.add_subcommand("serve", "run the server (needs root)");
  serve_options.AddServerOptionsTo(*serve);
  serve_options.AddTo(*serve);
  serve->footer(kServeFooter);
  CLI::App* sandbox = app.add_subcommand("sandbox", "make, use and end sandboxes of a server");
  sandbox_options.AddTo(*sandbox);
  CLI::App* snapshot = app.add_subcommand("snapshot", "list and delete snapshots of a server");
  snapshot_options.AddSnapshotsTo(*snapshot);
  CLI::App* drain =
      app.add_subcommand("drain", "pause every sandbox of a server and let none start");
  drain_options.AddDrainTo(*drain);
  CLI::App* key = app.add_subcommand("key", "make, limit and revoke API keys of a server");
  key_options.AddKeysTo(*key);
  CLI::App* user = app.add_subcommand("user", "add, change and disable users of a server");
  user_options.AddUsersTo(*user);
  CLI::App* token =
      app.add_subcommand("github-token", "the token that opens pull requests in your name");
  token_options.AddGithubTokensTo(*token);
  CLI::App* login = app.add_subcommand("login", "store the address of a server and an API key");
  login_options.AddLoginTo(*login);
  CLI::App* agent = app.add_subcommand("agent", "make and delete agents");
  agent_options.AddAgentsTo(*agent);
  CLI::App* task = app.add_subcommand("task", "give work to agents and watch them");
  task_options.AddTasksTo(*task);
  CLI::App* run = app.add_subcommand("run", "see and retry attempts at tasks");
  run_options.AddRunsTo(*run);
  CLI::App* session = app.add_subcommand("session", "talk with an agent in a sandbox");
  session_options.AddTo(*session);
  CLI::App* database = app.add_subcommand("database", "schema and backup of a server's database");
  CLI::App* build = app.add_subcommand("build", "build projects and see their previews");
  build_options.AddTo(*build);
  database_options.AddTo(*database);
  CLI::App* doctor =
      app.add_subcommand("doctor", "say what this machine can and cannot do for sandboxes");
  doctor_options.AddTo(*doctor);
  doctor->add_flag("--json", doctor_json, "print JSON");
  app.add_subcommand("version", "print the version");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return tl::unexpected(FromCli(app, error));
  }

  if (app.got_subcommand(serve)) {
    TRY_ASSIGN(Config config, OrUsage(serve_options.Build(environment)));
    return ServeCommand{std::move(config)};
  }
  if (app.got_subcommand(doctor)) {
    TRY_ASSIGN(Config config, OrUsage(doctor_options.Build(environment)));
    return DoctorCommand{std::move(config), doctor_json};
  }
  if (app.got_subcommand(database)) return Chosen(database_options.Build(environment));
  if (app.got_subcommand(key)) return Chosen(key_options.Build(environment));
  if (app.got_subcommand(user)) return Chosen(user_options.Build(environment));
  if (app.got_subcommand(token)) return Chosen(token_options.Build(environment));
  if (app.got_subcommand(login)) return Chosen(login_options.Build(environment));
  if (app.got_subcommand(agent)) return Chosen(agent_options.Build(environment));
  if (app.got_subcommand(task)) return Chosen(task_options.Build(environment));
  if (app.got_subcommand(run)) return Chosen(run_options.Build(environment));
  if (app.got_subcommand(session)) return Chosen(session_options.Build(environment));
  if (app.got_subcommand(build)) return Chosen(build_options.Build(environment));
  if (app.got_subcommand(sandbox)) return Chosen(sandbox_options.Build(environment));
  if (app.got_subcommand(snapshot)) return Chosen(snapshot_options.Build(environment));
  if (app.got_subcommand(drain)) return Chosen(drain_options.Build(environment));
  return VersionCommand{};
}

}  // namespace caisson::cli

// The only file that includes CLI11, which takes seconds to compile.
#include "cli/command_line.h"

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "base/text.h"
#include "cli/version.h"

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
    "The server is --url, else CAISSON_URL, else E2B_API_URL, else http://127.0.0.1:8000. The key\n"
    "is CAISSON_API_KEY, else E2B_API_KEY, else the file api-key in CAISSON_DATA_DIR, ./.caisson "
    "or\n"
    "/var/lib/caisson.\n"
    "\n"
    "Exit status: 0 done; 1 the server refused or is not there; 2 wrong usage. `exec` passes the\n"
    "command's own status on (128 + N if signal N ended it) and uses 125 for failures of its own.";
constexpr const char* kExecFooter =
    "What the command prints comes out here, and its standard input is this one's unless that is "
    "a\n"
    "terminal. Ctrl-C ends the command.\n"
    "\n"
    "Examples:\n"
    "  caisson sandbox exec ID -- python3 -c 'print(1+1)'\n"
    "  tar c src | caisson sandbox exec ID --cwd /tmp -- tar x";

constexpr const char* kKeyFooter =
    "Works on the database in the data directory, with or without a running server; a server "
    "reads\n"
    "keys when it starts. Limits: rate_limit (requests per second), rate_burst, create_rate_limit\n"
    "(sandboxes per minute), max_sandboxes (running at once); 0 is no limit, \"default\" the "
    "server's.\n"
    "\n"
    "Examples:\n"
    "  sudo caisson key add ci --limit max_sandboxes=20 --limit rate_limit=50\n"
    "  sudo caisson key limit ID max_sandboxes=50 rate_limit=default";

std::string Lookup(const Environment& environment, const std::string& name) {
  auto it = environment.find(name);
  return it == environment.end() ? "" : it->second;
}

std::string FirstOf(const Environment& environment, std::initializer_list<const char*> names,
                    std::string otherwise) {
  for (const char* name : names)
    if (std::string value = Lookup(environment, name); !value.empty()) return value;
  return otherwise;
}

// Where servers of this machine keep their data, as far as it can be known.
std::vector<std::string> DataDirs(const Environment& environment) {
  std::vector<std::string> dirs{".caisson", "/var/lib/caisson"};
  if (std::string dir = Lookup(environment, "CAISSON_DATA_DIR"); !dir.empty())
    dirs.insert(dirs.begin(), dir);
  return dirs;
}

std::string FindApiKey(const Environment& environment) {
  std::string key = FirstOf(environment, {"CAISSON_API_KEY", "E2B_API_KEY"}, "");
  if (!key.empty()) return key;
  for (const std::string& dir : DataDirs(environment))
    if (auto text = ReadFile(dir + "/api-key", 4096)) return std::string(Trim(*text));
  return "";
}

std::string FindAuthority(const Environment& environment) {
  for (const std::string& dir : DataDirs(environment))
    if (std::string file = dir + "/tls/ca.pem"; ReadFile(file, 1 << 20)) return file;
  return "";
}

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
  void AddServerOptionsTo(CLI::App& app) {
    Add(app, "--listen", "listen", "IP:PORT", "where to listen [127.0.0.1:8000]");
    Add(app, "--domain", "domain", "DOMAIN", "previews are at PORT-ID.DOMAIN [caisson.localhost]");
    Add(app, "--database-url", "database_url", "URL", "sqlite:///PATH [DATA_DIR/db/caisson.db]");
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
    AddSimple(app, "list", "all sandboxes of your key", ListSandboxes{});
    AddOne<ShowSandbox>(app, "info", "everything about one sandbox");
    AddExec(*app.add_subcommand("exec", "run a command in a sandbox"));
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
    std::string url = FirstOf(environment, {"CAISSON_URL", "E2B_API_URL"}, "http://127.0.0.1:8000");
    return SandboxCommand{.url = url_.empty() ? url : url_,
                          .api_key = FindApiKey(environment),
                          .ca_file = FindAuthority(environment),
                          .json = json_,
                          .action = action_};
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
  void AddSimple(CLI::App& app, const char* name, const char* help, SandboxAction action) {
    Choose(*app.add_subcommand(name, help), std::move(action));
  }
  template <class Action>
  void AddOne(CLI::App& app, const char* name, const char* help) {
    CLI::App* sub = app.add_subcommand(name, help);
    AddId(*sub);
    Choose(*sub, Action{});
  }
  void AddId(CLI::App& app) { app.add_option("ID", id_, "the sandbox")->required(); }
  void AddEnv(CLI::App& app, const char* help) {
    app.add_option("-e,--env", env_, help)->type_name("NAME=VALUE")->allow_extra_args(false);
  }

  void AddCreate(CLI::App& app) {
    app.add_option("--template", create_.template_name, "what it starts from [base]")
        ->type_name("NAME");
    app.add_option("--timeout", create_.timeout_s, "seconds until it ends [300]")
        ->type_name("SECONDS");
    AddEnv(app, "variable of every process in it; may be repeated");
    app.add_option("--metadata", metadata_, "your own label; may be repeated")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);
    app.add_flag("--no-internet", no_internet_, "it reaches nothing outside itself");
    app.add_flag("--auto-pause", create_.auto_pause, "paused, not killed, when its time is over");
    app.add_flag("--auto-resume", create_.auto_resume, "resumed by traffic when it is paused");
    Choose(app, CreateSandbox{});
  }
  void AddExec(CLI::App& app) {
    app.footer(kExecFooter);
    AddId(app);
    app.add_option("--user", exec_.user, "the Linux user [the template's]")->type_name("NAME");
    app.add_option("--cwd", exec_.cwd, "where to run it [the user's home]")->type_name("DIR");
    AddEnv(app, "variable of the command; may be repeated");
    app.add_option("COMMAND", exec_.command, "after --: the program and its arguments")->required();
    Choose(app, ExecInSandbox{});
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
  bool no_internet_ = false;
  bool without_memory_ = false;
  int64_t timeout_s_ = 300;
  int64_t count_ = 1;
  std::string name_;
  DeleteSnapshots delete_;
  DrainServer drain_;
};

// caisson key ...
class KeyOptions {
 public:
  void AddTo(CLI::App& app) {
    app.require_subcommand(1);
    app.fallthrough();
    app.footer(kKeyFooter);
    config_.AddTo(app);
    app.add_flag("--json", json_, "print JSON");
    CLI::App* add = app.add_subcommand("add", "make a key and print it, once");
    add->add_option("NAME", name_, "what it is for")->required();
    add->add_option("--limit", limits_, "what it may do; may be repeated")
        ->type_name("NAME=NUMBER")
        ->allow_extra_args(false);
    add->callback([this] { action_ = AddKey{}; });
    app.add_subcommand("list", "all keys but the first")->callback([this] {
      action_ = ListKeys{};
    });
    CLI::App* limit = app.add_subcommand("limit", "change what a key may do");
    limit->add_option("ID", name_, "the key")->required();
    limit->add_option("LIMIT", limits_, "NAME=NUMBER")->required();
    limit->callback([this] { action_ = LimitKey{}; });
    CLI::App* revoke = app.add_subcommand("revoke", "make a key invalid for ever");
    revoke->add_option("ID", name_, "the key")->required();
    revoke->callback([this] { action_ = RevokeKey{}; });
  }

  Result<KeyCommand> Build(const Environment& environment) {
    KeyCommand command{.json = json_, .action = action_};
    TRY_ASSIGN(command.config, config_.Build(environment));
    TRY_ASSIGN(StringMap limits, ParsePairs(limits_, "limit"));
    if (auto* add = std::get_if<AddKey>(&command.action)) *add = {name_, limits};
    if (auto* limit = std::get_if<LimitKey>(&command.action)) *limit = {name_, limits};
    if (auto* revoke = std::get_if<RevokeKey>(&command.action)) revoke->id = name_;
    return command;
  }

 private:
  ConfigOptions config_;
  bool json_ = false;
  std::string name_;
  std::vector<std::string> limits_;
  std::variant<AddKey, ListKeys, LimitKey, RevokeKey> action_;
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

tl::expected<Command, Exit> ParseCommandLine(int argc, const char* const* argv,
                                             const Environment& environment) {
  CLI::App app(kAbout, "caisson");
  app.require_subcommand(1);
  app.footer(kFooter);
  app.set_version_flag("--version", VersionText());
  app.get_formatter()->column_width(34);

  ConfigOptions serve_options, doctor_options;
  SandboxOptions sandbox_options, snapshot_options, drain_options;
  KeyOptions key_options;
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
  key_options.AddTo(*key);
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
  if (app.got_subcommand(key)) return Chosen(key_options.Build(environment));
  if (app.got_subcommand(sandbox)) return Chosen(sandbox_options.Build(environment));
  if (app.got_subcommand(snapshot)) return Chosen(snapshot_options.Build(environment));
  if (app.got_subcommand(drain)) return Chosen(drain_options.Build(environment));
  return VersionCommand{};
}

}  // namespace caisson::cli

#include "cli/serve.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>

#include "base/encoding.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/command_line.h"
#include "cli/data_dir.h"
#include "cli/privileges.h"
#include "http/tls.h"
#include "sandbox/secrets.h"
#include "session/tier_models.h"

namespace caisson::cli {
namespace {

constexpr std::chrono::milliseconds kLockPatience{3'000};
constexpr std::chrono::milliseconds kHandshakeTimeout{10'000};
// After the grace for requests: closing the database and the rest.
constexpr std::chrono::seconds kStopPatience{10};

void ConfigureLogFrom(const Config& config) {
  LogLevel level = config.log_level == "debug"   ? LogLevel::kDebug
                   : config.log_level == "warn"  ? LogLevel::kWarn
                   : config.log_level == "error" ? LogLevel::kError
                                                 : LogLevel::kInfo;
  bool text = config.log_format == "text" || (config.log_format == "auto" && isatty(STDERR_FILENO));
  ConfigureLog(level, text ? LogFormat::kText : LogFormat::kJson, "caisson");
}

Status CheckRoot() {
  if (geteuid() == 0) return {};
  return Fail(Code::kPermissionDenied,
              "caisson serve needs root to make sandboxes: namespaces, mounts, control groups and "
              "network devices. The part that speaks HTTP gives root up before its first request. "
              "Run it with sudo.");
}

// A variable that looks like a setting and is none is most likely misspelled.
void WarnOfUnknown(const Environment& environment) {
  constexpr std::string_view kPrefix = "CAISSON_";
  constexpr std::array kOthers = {"CAISSON_API_KEY", "CAISSON_CONFIG", "CAISSON_URL",
                                  "CAISSON_FLOW_CRASH_AT"};
  for (const auto& [name, value] : environment) {
    if (!name.starts_with(kPrefix) || std::ranges::count(kOthers, name) > 0) continue;
    Config any;  // every kind of setting takes a 0
    if (!SetConfigField(any, ToLower(name.substr(kPrefix.size())), "0"))
      LogWarn("there is no such setting", {{"variable", name}});
  }
}

// The key a person uses: from the environment, or from the file that KeyRing::Open has made.
// What somebody set, so that the log tells how this server ran. SECURITY: no secrets.
void LogSettings(const Config& config) {
  for (const ShownSetting& one : ShowConfig(config))
    if (one.source != "default")
      LogInfo("setting", {{"name", one.name}, {"value", one.value}, {"source", one.source}});
}

Result<std::string> FindKeyText(const Config& config, const std::string& configured) {
  if (!configured.empty()) return configured;
  TRY_ASSIGN(std::string text, ReadFile(config.data_dir + "/api-key", 4096));
  return std::string(Trim(text));
}

// Whoever called sudo shall be able to read the key and use `caisson sandbox` without it.
void GiveKeyToCaller(const Config& config) {
  const char* caller = getenv("SUDO_UID");
  auto uid = caller ? ParseInt<uid_t>(caller) : std::nullopt;
  std::string path = config.data_dir + "/api-key";
  if (uid && lchown(path.c_str(), *uid, static_cast<gid_t>(-1)))
    LogWarn("the API key's file could not be given to its user", {{"file", path}});
}

Result<http::StreamFactory> MakeTls(Config& config) {
  if (config.tls == "off") return http::StreamFactory();
  if (config.tls == "auto") {
    TRY_ASSIGN(auto authority, http::EnsureLocalAuthority(config.data_dir + "/tls", config.domain));
    config.tls_cert_file = authority.cert_file;
    config.tls_key_file = authority.key_file;
    LogInfo("clients must trust this certificate authority", {{"file", authority.ca_file}});
  }
  return http::TlsFromFiles(config.tls_cert_file, config.tls_key_file, kHandshakeTimeout);
}

// The server itself cannot read the file any more once it has given root up.
Status ReadAppKey(Config& config) {
  if (config.github_app_key_file.empty()) return {};
  TRY_ASSIGN(config.github_app_key_file, ReadFile(config.github_app_key_file, 64 << 10));
  return {};
}

Status ReadOauthSecret(Config& config) {
  if (config.github_oauth_client_secret_file.empty()) return {};
  TRY_ASSIGN(std::string secret, ReadFile(config.github_oauth_client_secret_file, 4 << 10));
  config.github_oauth_client_secret = Trim(secret);
  return {};
}

// Everything that needs root, in order. The engine is forked while there is one thread only.
struct Prepared {
  ServerUser user;
  UniqueFd lock;
  std::string api_key;
  std::string database_dir;
  AppInputs inputs;
};
Result<Prepared> Prepare(Config& config) {
  TRY(CheckRoot());
  WarnOfUnknown(ReadEnvironment());
  Prepared prepared;
  TRY_ASSIGN(prepared.user, FindServerUser(config.user));
  TRY(PrepareDataDir(config, prepared.user));
  TRY_ASSIGN(prepared.lock, LockDataDir(config, kLockPatience));
  // SECURITY: before the files with keys and secrets are read. It is root and trusted all the same;
  // what parses the packets of sandboxes starts from an empty memory (engine/net_process.h).
  TRY_ASSIGN(auto engine, engine::StartEngineProcess(config));
  prepared.inputs.engine_socket = std::move(engine.socket);
  const char* configured = getenv("CAISSON_API_KEY");
  std::string key = configured ? configured : "";
  TRY_ASSIGN(prepared.inputs.keys, account::KeyRing::Open(config.data_dir, key));
  if (key.empty()) GiveKeyToCaller(config);
  TRY_ASSIGN(prepared.api_key, FindKeyText(config, key));
  TRY_ASSIGN(prepared.inputs.secret, sandbox::LoadSecret(config.data_dir));
  TRY_ASSIGN(prepared.inputs.templates, sandbox::TemplateCatalog::Load(config.template_dir));
  if (prepared.inputs.templates.all().empty())
    LogWarn("there is no template, so no sandbox can be made", {{"dir", config.template_dir}});
  if (config.provider == "e2b" && config.e2b_api_key.empty())
    LogWarn("there is no E2B_API_KEY, so the provider e2b refuses every sandbox");
  TRY_ASSIGN(prepared.inputs.tls, MakeTls(config));
  TRY(session::ParseTierModels(config.tier_models));
  TRY_ASSIGN(prepared.inputs.models, git::ParseModelRoutes(config.model_routes, ReadEnvironment()));
  TRY(ReadAppKey(config));
  TRY(ReadOauthSecret(config));
  // Where the database is found once root is given up.
  DatabasePath database = FindDatabase(config.database_url);
  prepared.database_dir = database.dir;
  if (!database.dir.empty())
    config.database_url = fmt::format("sqlite:///{}/{}", kWritableDir, database.file);
  return prepared;
}

// Whether what is printed is kept: systemd names the journal's socket in a variable.
bool IsJournal(int fd) {
  const char* journal = getenv("JOURNAL_STREAM");
  struct stat info;
  return journal && fstat(fd, &info) == 0 &&
         fmt::format("{}:{}", info.st_dev, info.st_ino) == journal;
}

// What a person copies into a shell. On stdout only: logs must not hold the key.
void PrintReady(const Config& config, uint16_t port, const std::string& api_key) {
  std::string host = config.listen.substr(0, config.listen.rfind(':'));
  std::string scheme = config.tls == "off" ? "http" : "https";
  std::string reachable = host == "0.0.0.0" ? "127.0.0.1" : host == "[::]" ? "[::1]" : host;
  std::string url = fmt::format("{}://{}:{}", scheme, reachable, port);
  fmt::print("caisson: ready on {}://{}:{}\n", scheme, host, port);
  if (IsJournal(STDOUT_FILENO)) {
    fmt::print("API key: in {}/api-key, unless CAISSON_API_KEY says otherwise\n", config.data_dir);
    fflush(stdout);
    return;
  }
  fmt::print("API key: {}\n", api_key);
  fmt::print("export E2B_API_KEY={}\nexport E2B_API_URL={}\nexport E2B_SANDBOX_URL={}\n", api_key,
             url, url);
  // The part after # stays in the browser; the page logs in with it and forgets it.
  fmt::print("open {}/app#key={}\n", url, PercentEncode(api_key));
  fflush(stdout);
}

// One run of the loop: start, wait for a signal, stop.
class Run {
 public:
  Run(asio::io_context& loop, App& app, const Config& config, std::string api_key)
      : app_(app),
        config_(config),
        api_key_(std::move(api_key)),
        signals_(loop, SIGTERM, SIGINT),
        deadline_(loop) {}

  Task<int> Main() {
    // A database that is not up yet is waited for, unless somebody wants to stop meanwhile.
    using namespace asio::experimental::awaitable_operators;
    auto opened = co_await (app_.OpenStore() || signals_.async_wait(kAwait));
    if (opened.index() == 1) {
      LogInfo("stopping before the database was there");
      co_await app_.Stop();
      co_return engine_gone_ ? 1 : 0;
    }
    Status started = std::get<0>(std::move(opened));
    if (started) started = co_await app_.Start();
    if (!started) {
      LogError("the server could not start", {{"error", started.error().message()}});
      co_await app_.Stop();
      co_return 1;
    }
    LogInfo("ready", {{"listen", config_.listen}, {"port", app_.port()}, {"tls", config_.tls}});
    PrintReady(config_, app_.port(), api_key_);
    auto [ec, number] = co_await signals_.async_wait(kAwait);
    if (engine_gone_) {
      LogError("the engine process is gone; sandboxes live on and are found at the next start");
    } else {
      LogInfo("stopping", {{"signal", strsignal(number)}});
      ForceStop();
    }
    stopping_ = true;
    co_await app_.Stop();
    LogInfo("stopped");
    co_return engine_gone_ ? 1 : 0;
  }

  void EngineGone() {
    if (stopping_) return;
    engine_gone_ = true;
    signals_.cancel();
  }

 private:
  // A second signal, or too much time, ends the program at once: nothing would be lost.
  void ForceStop() {
    signals_.async_wait([](boost::system::error_code ec, int) {
      if (!ec) _exit(1);
    });
    std::chrono::milliseconds saving(config_.on_shutdown == "pause" ? 2 * config_.save_timeout_ms
                                                                    : 0);
    deadline_.expires_after(std::chrono::milliseconds(config_.shutdown_grace_ms) + kStopPatience +
                            saving);
    deadline_.async_wait([](boost::system::error_code ec) {
      if (ec) return;
      LogError("stopping took too long");
      _exit(1);
    });
  }

  App& app_;
  const Config& config_;
  std::string api_key_;
  asio::signal_set signals_;
  asio::steady_timer deadline_;
  bool engine_gone_ = false;
  bool stopping_ = false;
};

Result<int> ServeOrFail(Config& config) {
  LogSettings(config);
  TRY_ASSIGN(Prepared prepared, Prepare(config));
  asio::io_context loop(1);
  Run* run_now = nullptr;
  App app(loop.get_executor(), config, std::move(prepared.inputs), [&run_now] {
    if (run_now) run_now->EngineGone();
  });
  // Only now: the engine, and every program in a sandbox, would inherit this.
  signal(SIGHUP, SIG_IGN);  // a closed terminal is no reason to stop
  signal(SIGPIPE, SIG_IGN);
  TRY(app.Listen());
  // Each client connection may need one more into a sandbox.
  RaiseFileLimit(static_cast<uint64_t>(2 * config.http_max_connections + 4096));
  TRY(DropPrivileges(prepared.user, prepared.database_dir));
  Run run(loop, app, config, prepared.api_key);
  run_now = &run;
  std::optional<int> status;
  asio::co_spawn(loop, run.Main(), [&status](std::exception_ptr thrown, int result) {
    status = thrown ? 1 : result;
  });
  while (!status && loop.run_one() > 0) {
  }
  run_now = nullptr;
  return status.value_or(1);
}

}  // namespace

int Serve(Config config) {
  ConfigureLogFrom(config);
  auto status = ServeOrFail(config);
  if (status) return *status;
  if (config.log_format == "json" || !isatty(STDERR_FILENO))
    LogError(status.error().message());
  else
    fmt::print(stderr, "caisson: {}\n", status.error().message());
  return 1;
}

}  // namespace caisson::cli

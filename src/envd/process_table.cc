#include "envd/process_table.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "envd/path.h"
#include "envd/proto_json.h"

namespace caisson::envd {
namespace {

constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// Both ends of what connects a child: ours for the Process, the child's for SpawnRequest.
struct Wiring {
  ProcessPipes ours;
  UniqueFd child_stdin, child_stdout, child_stderr;
};

// `ours` is non-blocking, `theirs` is not: a program expects its stdio to block.
Status MakePipe(UniqueFd& ours, UniqueFd& theirs, bool child_reads) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return FailErrno("cannot create a pipe for the process");
  ours.Reset(fds[child_reads ? 1 : 0]);
  theirs.Reset(fds[child_reads ? 0 : 1]);
  return SetNonBlocking(ours.get());
}

Result<Wiring> Wire(const StartRequest& request) {
  Wiring wiring;
  if (request.pty) {
    TRY_ASSIGN(Pty pty, OpenPty(*request.pty, request.user));
    wiring.ours.pty = std::move(pty.master);
    wiring.child_stdin = std::move(pty.slave);
    return wiring;
  }
  TRY(MakePipe(wiring.ours.stdout_pipe, wiring.child_stdout, false));
  TRY(MakePipe(wiring.ours.stderr_pipe, wiring.child_stderr, false));
  if (request.use_stdin) {
    TRY(MakePipe(wiring.ours.stdin_pipe, wiring.child_stdin, true));
  } else {
    wiring.child_stdin.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!wiring.child_stdin) return FailErrno("cannot open /dev/null");
  }
  return wiring;
}

// Later sources win: envd's basics, the sandbox's variables, the request's.
EnvVars MakeEnv(const StartRequest& request, const Settings& settings) {
  const char* path = getenv("PATH");
  EnvVars env = {{"PATH", path != nullptr ? path : std::string(kDefaultPath)},
                 {"HOME", request.user.home},
                 {"USER", request.user.name},
                 {"LOGNAME", request.user.name}};
  for (const auto& [name, value] : settings.GlobalEnv()) env[name] = value;
  for (const auto& [name, value] : request.config.envs) env[name] = value;
  if (request.pty) {
    env.try_emplace("TERM", "xterm-256color");
    env.try_emplace("LANG", "C.UTF-8");
    env.try_emplace("LC_ALL", "C.UTF-8");
  }
  return env;
}

Status CheckTexts(const ProcessConfig& config) {
  TRY(CheckNoNul(config.cmd, "the command"));
  for (const std::string& arg : config.args) TRY(CheckNoNul(arg, "an argument"));
  for (const auto& [name, value] : config.envs) {
    TRY(CheckNoNul(name, "the name of an environment variable"));
    TRY(CheckNoNul(value, "the value of an environment variable"));
    if (name.empty() || name.find('=') != std::string::npos)
      return Fail(Code::kInvalidArgument, "'{}' cannot be the name of an environment variable",
                  name);
  }
  return {};
}

}  // namespace

ProcessTable::ProcessTable(asio::any_io_executor executor, const Settings& settings)
    : executor_(executor), settings_(settings), tasks_(executor) {}

Status ProcessTable::Begin() {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &mask, nullptr);
  int fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
  if (fd < 0) return FailErrno("cannot listen to signals");
  signals_.emplace(executor_, fd);
  tasks_.Spawn("reaper", ReapLoop());
  return {};
}

Task<void> ProcessTable::Stop() { co_await tasks_.Stop(); }

Task<void> ProcessTable::ReapLoop() {
  for (;;) {
    signalfd_siginfo info[8];
    auto [ec, size] = co_await signals_->async_read_some(asio::buffer(info), kAwait);
    if (ec) co_return;
    Reap();
  }
}

void ProcessTable::Reap() {
  // As init, everything that ends is ours. Otherwise only our children are: the program around us
  // may have others.
  int status = 0;
  if (getpid() == 1) {
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
      auto known = unreaped_.extract(pid);
      if (known) known.mapped()->SetExit(status);
    }
    return;
  }
  for (auto it = unreaped_.begin(); it != unreaped_.end();) {
    auto current = it++;
    if (waitpid(current->first, &status, WNOHANG) <= 0) continue;
    current->second->SetExit(status);
    unreaped_.erase(current);
  }
}

Result<SpawnRequest> ProcessTable::Prepare(const StartRequest& request) const {
  TRY(CheckTexts(request.config));
  SpawnRequest spawn;
  spawn.user = request.user;
  spawn.groups = Accounts::Current()->GroupsOf(request.user);
  TRY_ASSIGN(spawn.cwd,
             ResolvePath(request.config.cwd.value_or(""), request.user, settings_.default_workdir));
  struct stat st{};
  if (stat(spawn.cwd.c_str(), &st) != 0 && (errno == ENOENT || errno == ENOTDIR))
    return Fail(Code::kInvalidArgument, "cwd '{}' does not exist", spawn.cwd);
  EnvVars env = MakeEnv(request, settings_);
  TRY_ASSIGN(spawn.file, FindProgram(request.config.cmd, env["PATH"]));
  for (const auto& [name, value] : env) spawn.env.push_back(name + "=" + value);
  spawn.argv.push_back(request.config.cmd);
  spawn.argv.insert(spawn.argv.end(), request.config.args.begin(), request.config.args.end());
  return spawn;
}

Task<Result<ProcessTable::Started>> ProcessTable::Start(StartRequest request) {
  auto begun = std::chrono::steady_clock::now();
  if (live_.size() >= static_cast<size_t>(settings_.limits.max_processes))
    co_return Fail(Code::kResourceExhausted, "this sandbox already runs {} processes",
                   live_.size());
  CO_TRY_ASSIGN(SpawnRequest spawn, Prepare(request));
  auto wired = Wire(request);
  if (!wired && wired.error().code() != Code::kResourceExhausted)
    co_return Fail(Code::kInternal, "{}", wired.error().message());  // not the client's fault
  CO_TRY_ASSIGN(Wiring wiring, std::move(wired));
  spawn.controlling_terminal = request.pty.has_value();
  spawn.stdin_fd = wiring.child_stdin.get();
  spawn.stdout_fd = request.pty ? spawn.stdin_fd : wiring.child_stdout.get();
  spawn.stderr_fd = request.pty ? spawn.stdin_fd : wiring.child_stderr.get();
  CO_TRY_ASSIGN(Spawned spawned, Fork(spawn));
  auto process =
      std::make_shared<Process>(executor_, spawned.pid, std::move(request.config),
                                std::move(request.tag), std::move(wiring.ours), settings_.limits);
  unreaped_[process->pid()] = process;
  wiring = {};  // the child's ends must not stay open here, or its output never ends
  Status running =
      co_await WaitForExec(std::move(spawned.status), spawn.file,
                           std::chrono::milliseconds(settings_.limits.exec_timeout_ms));
  if (!running) {
    (void)process->Signal(SIGKILL);
    co_return tl::unexpected(running.error());
  }
  std::erase_if(ended_, [&](const Ended& e) { return e.pid == process->pid(); });
  live_[process->pid()] = process;
  Started started{process, process->output().Subscribe()};
  std::optional<std::chrono::steady_clock::time_point> deadline;
  if (request.timeout) deadline = begun + *request.timeout;
  process->Run(tasks_, deadline, [this, process = process.get()] { Retain(*process); });
  co_return std::move(started);
}

void ProcessTable::Retain(const Process& process) {
  auto now = std::chrono::steady_clock::now();
  while (!ended_.empty() &&
         (ended_.front().forget <= now ||
          ended_.size() >= static_cast<size_t>(settings_.limits.max_retained_ends)))
    ended_.pop_front();
  // The number may be another's by now: the kernel gives it away while a child holds the output.
  auto it = live_.find(process.pid());
  if (it == live_.end() || it->second.get() != &process) return;
  ended_.push_back({now + std::chrono::milliseconds(settings_.limits.retain_end_ms), process.pid(),
                    process.tag(), process.end_event()});
  live_.erase(it);
}

void ProcessTable::KeepEnds() {
  auto forget =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(settings_.limits.retain_end_ms);
  for (Ended& ended : ended_) ended.forget = forget;
}

Result<std::shared_ptr<Process>> ProcessTable::Find(const Selector& selector) const {
  if (const pid_t* pid = std::get_if<pid_t>(&selector)) {
    auto it = live_.find(*pid);
    if (it != live_.end()) return it->second;
    return Fail(Code::kNotFound, "process with pid {} not found", static_cast<uint32_t>(*pid));
  }
  const std::string& tag = std::get<std::string>(selector);
  for (const auto& [pid, process] : live_) {
    if (process->tag() == tag) return process;
  }
  return Fail(Code::kNotFound, "process with tag {} not found", tag);
}

const ProcessTable::Ended* ProcessTable::FindEnded(const Selector& selector) const {
  auto now = std::chrono::steady_clock::now();
  const pid_t* pid = std::get_if<pid_t>(&selector);
  // The newest first: a tag may have been used again.
  for (auto it = ended_.rbegin(); it != ended_.rend() && it->forget > now; ++it) {
    if (pid != nullptr ? it->pid == *pid : it->tag == std::get<std::string>(selector)) return &*it;
  }
  return nullptr;
}

std::vector<std::shared_ptr<Process>> ProcessTable::List() const {
  std::vector<std::shared_ptr<Process>> out;
  for (const auto& [pid, process] : live_) out.push_back(process);
  return out;
}

}  // namespace caisson::envd

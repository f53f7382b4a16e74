#include "git/ssh_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/write.hpp>

#include "base/fd.h"

namespace caisson::git {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr size_t kMaxErrors = 8 << 10;
constexpr const char* kPath = "/usr/local/bin:/usr/bin:/bin";

struct Ends {
  UniqueFd ours, theirs;
};

Result<Ends> OutputPipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC)) return FailErrno("making a pipe");
  return Ends{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// A socket and not a pipe: writing to a program that has ended must not raise a signal here.
Result<Ends> InputPipe() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) return FailErrno("making a socket");
  return Ends{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What posix_spawn() needs, freed whatever happens.
struct SpawnPlan {
  SpawnPlan(int in, int out, int err) {
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
    // The server ignores some signals, and what is ignored stays so in a new program.
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
};

// The process has ended, or will at once.
void Reap(int pidfd) {
  siginfo_t info{};
  waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info, WEXITED);
}

}  // namespace

struct SshProcess::Errors {
  explicit Errors(asio::any_io_executor executor) : pipe(executor), done(executor) {}
  asio::posix::stream_descriptor pipe;
  std::string text;
  bool ended = false;
  Condition done;
};

SshProcess::SshProcess(asio::any_io_executor executor)
    : executor_(executor),
      input_(executor),
      output_(executor),
      pidfd_(executor),
      errors_(std::make_shared<Errors>(executor)),
      buffer_(kBufferBytes, '\0') {}

Result<std::unique_ptr<SshProcess>> SshProcess::Start(asio::any_io_executor executor,
                                                      std::vector<std::string> argv,
                                                      std::vector<std::string> environment,
                                                      std::chrono::milliseconds stall_timeout) {
  std::unique_ptr<SshProcess> process(new SshProcess(executor));
  process->stall_timeout_ = stall_timeout;
  TRY(process->Spawn(std::move(argv), std::move(environment)));
  asio::co_spawn(executor, Collect(process->errors_), asio::detached);
  return process;
}

Status SshProcess::Spawn(std::vector<std::string> argv, std::vector<std::string> environment) {
  TRY_ASSIGN(Ends in, InputPipe());
  TRY_ASSIGN(Ends out, OutputPipe());
  TRY_ASSIGN(Ends err, OutputPipe());
  environment.push_back(fmt::format("PATH={}", kPath));
  SpawnPlan plan(in.theirs.get(), out.theirs.get(), err.theirs.get());
  pid_t pid = 0;
  int error = posix_spawnp(&pid, argv[0].c_str(), &plan.files, &plan.attributes,
                           Pointers(argv).data(), Pointers(environment).data());
  if (error) {
    errno = error;
    return FailErrno("starting {}", argv[0]);
  }
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return FailErrno("watching {}", argv[0]);
  }
  input_.assign(asio::local::stream_protocol(), in.ours.Release());
  output_.assign(out.ours.Release());
  errors_->pipe.assign(err.ours.Release());
  pidfd_.assign(pidfd.Release());
  return {};
}

SshProcess::~SshProcess() {
  if (!pidfd_.is_open() || reaped_) return;
  syscall(SYS_pidfd_send_signal, pidfd_.native_handle(), SIGKILL, nullptr, 0);
  Reap(pidfd_.native_handle());
}

Task<void> SshProcess::Collect(std::shared_ptr<Errors> errors) {
  std::string piece(kMaxErrors, '\0');
  for (;;) {
    auto [ec, n] = co_await errors->pipe.async_read_some(asio::buffer(piece), kAwait);
    if (ec) break;
    errors->text.append(piece, 0, n);
    if (errors->text.size() > kMaxErrors) errors->text.erase(0, errors->text.size() - kMaxErrors);
  }
  errors->ended = true;
  errors->done.Notify();
}

Task<Result<size_t>> SshProcess::ReadSome() {
  auto [ec, n] = co_await output_.async_read_some(asio::buffer(buffer_), kAwait);
  if (ec == asio::error::eof) co_return size_t{0};
  if (ec) co_return tl::unexpected(FromEc(ec, "reading from ssh"));
  co_return n;
}

Task<Result<std::string_view>> SshProcess::Read() {
  for (;;) {
    auto n = co_await WithDeadline(stall_timeout_, "waiting for the other side", ReadSome());
    auto now = std::chrono::steady_clock::now();
    bool silent = !n && n.error().code() == Code::kDeadlineExceeded;
    // It says nothing while it still takes what it is sent.
    if (silent && now - moved_ < stall_timeout_) continue;
    if (!n) co_return tl::unexpected(std::move(n).error());
    moved_ = now;
    co_return std::string_view(buffer_).substr(0, *n);
  }
}

Task<Status> SshProcess::WriteAll(std::string_view data) {
  while (!data.empty()) {
    auto [ec, n] = co_await input_.async_write_some(asio::buffer(data), kAwait);
    if (ec) co_return tl::unexpected(FromEc(ec, "writing to ssh"));
    moved_ = std::chrono::steady_clock::now();
    data.remove_prefix(n);
  }
  co_return Status();
}

Task<Status> SshProcess::Write(std::string_view data) {
  // In pieces, so that the deadline is for each of them.
  for (; !data.empty(); data.remove_prefix(std::min(data.size(), kBufferBytes)))
    CO_TRY(co_await WithDeadline(stall_timeout_, "sending to the other side",
                                 WriteAll(data.substr(0, kBufferBytes))));
  co_return Status();
}

void SshProcess::CloseInput() {
  boost::system::error_code ignored;
  input_.close(ignored);
}

Task<Result<int>> SshProcess::Wait() {
  auto [ec] = co_await pidfd_.async_wait(asio::posix::stream_descriptor::wait_read, kAwait);
  if (ec) co_return tl::unexpected(FromEc(ec, "waiting for ssh"));
  siginfo_t info{};
  if (waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd_.native_handle()), &info,
             WEXITED))
    co_return FailErrno("waiting for ssh");
  reaped_ = true;
  // A child of ssh could hold its standard error open; nobody waits for that one.
  if (!errors_->ended) co_await errors_->done.Wait(std::chrono::seconds(1));
  co_return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

const std::string& SshProcess::errors() const { return errors_->text; }

}  // namespace caisson::git

#include "cli/shell.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>

#include "base/encoding.h"
#include "base/fd.h"
#include "base/id.h"
#include "cli/exec.h"
#include "sdk/pty.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;
using namespace asio::experimental::awaitable_operators;

constexpr size_t kInputChunk = 16 << 10;
constexpr int kKillAttempts = 3;
constexpr std::chrono::milliseconds kKillPause{500};

// Every key goes to the shell as it is typed, also Ctrl-C, while it lives.
class RawTerminal {
 public:
  static Result<std::unique_ptr<RawTerminal>> Enter() {
    termios before{};
    if (tcgetattr(STDIN_FILENO, &before)) return FailErrno("reading the terminal's settings");
    termios raw = before;
    cfmakeraw(&raw);
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw)) return FailErrno("setting up the terminal");
    return std::unique_ptr<RawTerminal>(new RawTerminal(before));
  }
  ~RawTerminal() { tcsetattr(STDIN_FILENO, TCSADRAIN, &before_); }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  explicit RawTerminal(const termios& before) : before_(before) {}
  const termios before_;
};

sdk::PtySize WindowSize() {
  winsize window{};
  if (ioctl(STDIN_FILENO, TIOCGWINSZ, &window) || !window.ws_col || !window.ws_row) return {};
  return {.cols = window.ws_col, .rows = window.ws_row};
}

class Attachment {
 public:
  Attachment(asio::any_io_executor executor, sdk::EnvdClient envd)
      : pty_(envd, RandomId("shell-", 20)),
        // From the beginning, so that none is missed. What would end us must not leave the
        // terminal as it is now.
        ends_(executor, SIGINT, SIGTERM, SIGHUP),
        resizes_(executor, SIGWINCH),
        keyboard_(executor) {
    ends_.add(SIGQUIT);
  }

  Task<Result<int>> Run(sdk::PtyCommand command) {
    CO_TRY(WatchKeyboard());
    CO_TRY(co_await pty_.Start(std::move(command)));
    auto status = co_await Attend();
    if (!ended_) co_await EndShell();
    co_return status;
  }

 private:
  // Nobody else is left who could end it, so one answer that did not come is not the last word.
  Task<void> EndShell() {
    Status done;
    for (int attempt = 0; attempt < kKillAttempts; ++attempt) {
      if (attempt > 0) co_await SleepFor(kKillPause);
      done = co_await pty_.Kill();
      if (done || done.error().code() == Code::kNotFound) co_return;
    }
    fmt::print(stderr, "caisson: the shell may still run in its sandbox: {}\n",
               done.error().message());
  }

  Task<Result<int>> Attend() {
    CO_TRY_ASSIGN(auto raw, RawTerminal::Enter());
    auto winner = co_await (Show() || Type() || Interrupted() || FollowSize());
    if (winner.index() == 0) co_return std::get<0>(std::move(winner));
    if (winner.index() == 1) co_return std::get<1>(std::move(winner));
    co_return std::get<2>(winner);
  }

  // It is only asked whether a key waits: reading without blocking would be a property of the
  // terminal, which others share.
  Status WatchKeyboard() {
    UniqueFd copy(dup(STDIN_FILENO));
    if (!copy) return FailErrno("opening the terminal");
    boost::system::error_code ec;
    keyboard_.assign(copy.Release(), ec);
    if (ec) return tl::unexpected(FromEc(ec, "watching the terminal"));
    return {};
  }

  // Returns when the shell has ended.
  Task<Result<int>> Show() {
    using Kind = sdk::ProcessEvent::Kind;
    for (;;) {
      CO_TRY_ASSIGN(auto event, co_await pty_.Next());
      ended_ = event.kind == Kind::kEnded;
      if (ended_) co_return event.exit_code;
      if (event.kind == Kind::kPty) WriteAll(STDOUT_FILENO, event.data);
    }
  }

  // Returns when the terminal or the way to the shell is gone.
  Task<Result<int>> Type() {
    for (;;) {
      auto [ec] = co_await keyboard_.async_wait(asio::posix::descriptor_base::wait_read, kAwait);
      if (ec) co_return tl::unexpected(FromEc(ec, "watching the terminal"));
      std::string keys(kInputChunk, '\0');
      ssize_t size = read(STDIN_FILENO, keys.data(), keys.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) co_return 128 + SIGHUP;
      keys.resize(static_cast<size_t>(size));
      Status sent = co_await pty_.Send(std::move(keys));
      if (sent) continue;
      // A shell that has ended says so itself.
      if (sent.error().code() != Code::kNotFound) co_return tl::unexpected(sent.error());
      for (;;) co_await SleepFor(std::chrono::hours(1));
    }
  }

  Task<int> Interrupted() {
    auto [ec, number] = co_await ends_.async_wait(kAwait);
    co_return 128 + number;
  }

  // Never returns.
  Task<void> FollowSize() {
    for (;;) {
      auto [ec, number] = co_await resizes_.async_wait(kAwait);
      // A size that is wrong until the next change is better than no shell.
      if (!ec) (void)co_await pty_.Resize(WindowSize());
    }
  }

  sdk::Pty pty_;
  bool ended_ = false;
  asio::signal_set ends_, resizes_;
  asio::posix::stream_descriptor keyboard_;
};

}  // namespace

Task<Result<int>> Shell(ApiClient& client, ShellInSandbox shell) {
  if (!isatty(STDIN_FILENO))
    co_return Fail(Code::kFailedPrecondition,
                   "a shell needs a terminal, and standard input is none; `caisson sandbox exec {} "
                   "-- bash` runs commands from a file or a pipe",
                   shell.id);
  CO_TRY_ASSIGN(auto info, co_await client.Call("GET", "/sandboxes/" + PercentEncode(shell.id)));
  if (!info.body.is_object()) co_return Fail(Code::kDataLoss, "the server's answer makes no sense");
  sdk::PtyCommand command{.cwd = std::move(shell.cwd),
                          .env = std::move(shell.env),
                          .user = std::move(shell.user),
                          .size = WindowSize()};
  if (const char* kind = getenv("TERM"); kind && *kind) command.env.try_emplace("TERM", kind);
  Attachment attachment(co_await asio::this_coro::executor, client.Envd(info.body.as_object()));
  co_return co_await attachment.Run(std::move(command));
}

}  // namespace caisson::cli

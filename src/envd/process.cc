#include "envd/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cstring>

#include "base/encoding.h"
#include "envd/proc.h"

namespace caisson::envd {
namespace {

constexpr size_t kPipeChunk = 32 << 10;
constexpr size_t kPtyChunk = 16 << 10;
// What a pipe can hold after its writer was killed, and then some.
constexpr size_t kMaxDrain = 256 << 10;

// A limited rate is met in steps of this length, so that output still comes evenly.
constexpr int64_t kRateStepsPerSecond = 10;
constexpr int64_t kMinRateChunk = 1 << 10;
// While a deadline is armed the clock is looked at this often, and a look that comes later than
// this means that envd could not run: the sandbox was frozen, or its memory was saved and restored.
constexpr std::chrono::milliseconds kLook{500};

// One buffer for all: a read and its publication happen without a suspension in between.
std::array<char, kPipeChunk> scratch;

// Go's names, which differ from strsignal's.
constexpr std::array<std::string_view, 32> kSignalNames = {
    "signal 0",
    "hangup",
    "interrupt",
    "quit",
    "illegal instruction",
    "trace/breakpoint trap",
    "aborted",
    "bus error",
    "floating point exception",
    "killed",
    "user defined signal 1",
    "segmentation fault",
    "user defined signal 2",
    "broken pipe",
    "alarm clock",
    "terminated",
    "stack fault",
    "child exited",
    "continued",
    "stopped (signal)",
    "stopped",
    "stopped (tty input)",
    "stopped (tty output)",
    "urgent I/O condition",
    "CPU time limit exceeded",
    "file size limit exceeded",
    "virtual timer expired",
    "profiling timer expired",
    "window changed",
    "I/O possible",
    "power failure",
    "bad system call",
};

Event MakeEvent(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

}  // namespace

boost::json::object ToJson(const ProcessConfig& config) {
  boost::json::object out;
  if (!config.cmd.empty()) out["cmd"] = config.cmd;
  if (!config.args.empty())
    out["args"] = boost::json::array(config.args.begin(), config.args.end());
  if (!config.envs.empty()) {
    boost::json::object envs;
    for (const auto& [name, value] : config.envs) envs[name] = value;
    out["envs"] = std::move(envs);
  }
  if (config.cwd) out["cwd"] = *config.cwd;
  return out;
}

ExitInfo DescribeExit(int wait_status) {
  if (WIFEXITED(wait_status)) {
    int code = WEXITSTATUS(wait_status);
    return {code, true, fmt::format("exit status {}", code)};
  }
  auto signal = static_cast<size_t>(WTERMSIG(wait_status));
  std::string name = signal < kSignalNames.size() ? std::string(kSignalNames[signal])
                                                  : fmt::format("signal {}", signal);
  return {-1, false, "signal: " + name + (WCOREDUMP(wait_status) ? " (core dumped)" : "")};
}

Event StartEvent(pid_t pid) {
  return MakeEvent(fmt::format(R"({{"event":{{"start":{{"pid":{}}}}}}})", pid));
}

Event EndEvent(const ExitInfo& exit) {
  // The texts are ours: nothing in them needs escaping. Defaults are left out, as proto3 asks.
  std::string fields;
  if (exit.code != 0) fields += fmt::format(R"("exitCode":{},)", exit.code);
  if (exit.exited) fields += R"("exited":true,)";
  fields += fmt::format(R"("status":"{}")", exit.status);
  if (exit.code != 0) fields += fmt::format(R"(,"error":"{}")", exit.status);
  return MakeEvent(R"({"event":{"end":{)" + fields + "}}}");
}

Event KeepaliveEvent() { return MakeEvent(R"({"event":{"keepalive":{}}})"); }

Process::Process(asio::any_io_executor executor, pid_t pid, ProcessConfig config,
                 std::optional<std::string> tag, ProcessPipes pipes, const Limits& limits)
    : executor_(executor),
      pid_(pid),
      config_(std::move(config)),
      tag_(std::move(tag)),
      output_(std::make_shared<OutputHub>(executor, static_cast<size_t>(limits.subscriber_buffer))),
      stdin_(Adopt(std::move(pipes.stdin_pipe))),
      stdout_(Adopt(std::move(pipes.stdout_pipe))),
      stderr_(Adopt(std::move(pipes.stderr_pipe))),
      pty_(Adopt(std::move(pipes.pty))),
      input_lock_(executor),
      changed_(executor),
      limits_(limits) {}

std::optional<Process::Descriptor> Process::Adopt(UniqueFd fd) {
  if (!fd) return std::nullopt;
  std::optional<Descriptor> out(std::in_place, executor_);
  boost::system::error_code ec;
  out->assign(fd.get(), ec);
  if (ec) return std::nullopt;
  (void)fd.Release();
  return out;
}

void Process::Run(TaskGroup& tasks, std::optional<std::chrono::steady_clock::time_point> deadline,
                  std::function<void()> on_end) {
  deadline_ = deadline;
  auto follow = [&](std::optional<Descriptor>& source, Output kind) {
    if (!source) return;
    ++readers_;
    tasks.Spawn("output", Follow(shared_from_this(), *source, kind));
  };
  follow(stdout_, Output::kStdout);
  follow(stderr_, Output::kStderr);
  follow(pty_, Output::kPty);
  tasks.Spawn("process", Supervise(shared_from_this(), std::move(on_end)));
}

void Process::SetExit(int wait_status) {
  wait_status_ = wait_status;
  changed_.cancel();
}

Task<void> Process::Supervise(std::shared_ptr<Process> self, std::function<void()> on_end) {
  while (!self->IsOver()) {
    if (!self->deadline_ || self->timed_out_) {
      self->changed_.expires_at(asio::steady_timer::time_point::max());
      co_await self->changed_.async_wait(kAwait);
      continue;
    }
    auto look = std::min(*self->deadline_, std::chrono::steady_clock::now() + kLook);
    self->changed_.expires_at(look);
    co_await self->changed_.async_wait(kAwait);
    auto now = std::chrono::steady_clock::now();
    if (now > look + kLook) *self->deadline_ += now - look;
    if (now >= *self->deadline_) self->TimeOut();
  }
  // The others who hold the output open are not waited for, but what the process itself wrote
  // before its end must not be lost.
  self->DrainNow(self->stdout_, Output::kStdout);
  self->DrainNow(self->stderr_, Output::kStderr);
  self->DrainNow(self->pty_, Output::kPty);
  boost::system::error_code ignored;
  if (self->stdin_) self->stdin_->close(ignored);
  self->end_event_ = EndEvent(DescribeExit(*self->wait_status_));
  self->output_->Publish(self->end_event_);
  self->output_->Wake();
  on_end();
}

void Process::Kill() {
  signaled_ = true;
  KillTree(pid_, !wait_status_);
  changed_.cancel();
}

void Process::TimeOut() {
  timed_out_ = true;
  Kill();
  output_->Publish(KeepaliveEvent());  // wakes the stream that started it
}

Task<void> Process::Follow(std::shared_ptr<Process> self, Descriptor& source, Output kind) {
  while (source.is_open()) {
    if (!self->output_->HasRoom()) {
      co_await self->output_->WaitForRoom(std::chrono::steady_clock::now() +
                                          std::chrono::seconds(1));
      continue;
    }
    if (co_await self->WaitForRate()) continue;
    auto [ec] = co_await source.async_wait(Descriptor::wait_read, kAwait);
    if (ec || !source.is_open() || !self->ReadOnce(source, kind)) break;
  }
  --self->readers_;
  self->changed_.cancel();
}

Task<bool> Process::WaitForRate() {
  auto now = std::chrono::steady_clock::now();
  if (OutputRate() == 0 || now >= next_read_) co_return false;
  auto wait = std::chrono::ceil<std::chrono::milliseconds>(next_read_ - now);
  co_await SleepFor(std::min(wait, std::chrono::milliseconds(1000)));
  co_return true;
}

bool Process::ReadOnce(Descriptor& source, Output kind) {
  const int64_t rate = OutputRate();
  size_t limit = kind == Output::kPty ? kPtyChunk : kPipeChunk;
  if (rate > 0)
    limit =
        std::min(limit, static_cast<size_t>(std::max(rate / kRateStepsPerSecond, kMinRateChunk)));
  ssize_t size = read(source.native_handle(), scratch.data(), limit);
  if (size < 0) return errno == EAGAIN || errno == EINTR;  // a terminal ends with EIO
  if (size == 0) return false;
  if (output_->subscribers() == 0) return true;
  // Both outputs of a command share the rate; what is not read yet waits in the pipe.
  if (rate > 0)
    next_read_ = std::max(next_read_, std::chrono::steady_clock::now()) +
                 std::chrono::nanoseconds(size * 1'000'000'000 / rate);
  constexpr std::array<std::string_view, 3> kNames = {"stdout", "stderr", "pty"};
  std::string text = R"({"event":{"data":{")";
  text += kNames[static_cast<size_t>(kind)];
  text += "\":\"";
  text += Base64Encode({scratch.data(), static_cast<size_t>(size)});
  text += "\"}}}";
  output_->Publish(MakeEvent(std::move(text)));
  return true;
}

void Process::DrainNow(std::optional<Descriptor>& source, Output kind) {
  if (!source || !source->is_open()) return;
  for (size_t total = 0; total < kMaxDrain; total += kPipeChunk) {
    errno = 0;
    if (!ReadOnce(*source, kind) || errno == EAGAIN) break;
  }
  boost::system::error_code ignored;
  source->close(ignored);
}

Task<Status> Process::Write(Input kind, std::string data) {
  auto self = shared_from_this();
  if (kind == Input::kStdin && is_pty())
    co_return Fail(Code::kInternal,
                   "error writing to stdin: the process has a terminal, send pty input instead");
  if (kind == Input::kPty && !is_pty())
    co_return Fail(Code::kInternal,
                   "error writing to tty: the process has no terminal, send stdin instead");
  auto guard = co_await input_lock_.Lock();
  if (!guard) co_return Fail(Code::kCanceled, "the input was canceled");
  auto& target = is_pty() ? pty_ : stdin_;
  if (!target || !target->is_open())
    co_return Fail(Code::kInternal, "error writing to stdin: stdin not enabled or closed");
  for (size_t offset = 0; offset < data.size();) {
    ssize_t size = write(target->native_handle(), data.data() + offset, data.size() - offset);
    if (size >= 0) {
      offset += static_cast<size_t>(size);
    } else if (errno == EAGAIN) {
      auto [ec] = co_await target->async_wait(Descriptor::wait_write, kAwait);
      if (ec || !target->is_open())
        co_return Fail(Code::kInternal, "error writing to process {}: it has ended", pid_);
    } else if (errno != EINTR) {
      co_return Fail(Code::kInternal, "error writing to process {}: {}", pid_, strerror(errno));
    }
  }
  co_return Status();
}

Task<Status> Process::CloseStdin() {
  auto self = shared_from_this();
  if (is_pty())
    co_return Fail(Code::kUnknown,
                   "error closing stdin: a terminal cannot be closed, send Ctrl+D (0x04) instead");
  auto guard = co_await input_lock_.Lock();
  if (!guard) co_return Fail(Code::kCanceled, "closing stdin was canceled");
  boost::system::error_code ignored;
  if (stdin_) stdin_->close(ignored);
  co_return Status();
}

Status Process::Resize(PtySize size) {
  if (!is_pty() || !pty_->is_open())
    return Fail(Code::kInternal, "error resizing tty: tty not assigned to process");
  return ResizePty(pty_->native_handle(), size);
}

Status Process::Signal(int signal) {
  // A process that was reaped has no pid any more; its end is about to be told.
  if (!wait_status_ && kill(pid_, signal) != 0)
    return Fail(Code::kInternal, "error sending signal: {}", strerror(errno));
  if (signal == SIGKILL || signal == SIGTERM) signaled_ = true;
  changed_.cancel();
  return {};
}

}  // namespace caisson::envd

#include <fcntl.h>
#include <unistd.h>

#include "http/stream.h"
#include "http/watchdog.h"

namespace caisson::http {
namespace {

constexpr size_t kCopyBytes = 16 << 10;
constexpr size_t kPipeBytes = 256 << 10;
constexpr size_t kShareAfter = 1 << 20;

struct Pipe {
  UniqueFd in, out;
};

Result<Pipe> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0) return FailErrno("making a pipe");
  Pipe pipe{UniqueFd(fds[1]), UniqueFd(fds[0])};
  (void)fcntl(fds[1], F_SETPIPE_SZ, kPipeBytes);  // a smaller pipe works too
  return pipe;
}

ssize_t Splice(int from, int to, size_t size) {
  ssize_t n;
  do {
    n = splice(from, nullptr, to, nullptr, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  } while (n < 0 && errno == EINTR);
  return n;
}

// Through memory: one buffer at a time. True if there is more than that suits; false at the end.
Task<Result<bool>> CopySome(Stream& from, Stream& to) {
  std::string buffer;
  for (;;) {
    // No buffer while nothing comes: most tunnels are silent most of the time.
    CO_TRY(co_await from.WaitReadable());
    buffer.resize(kCopyBytes);
    auto n = from.TryRead(buffer);
    if (!n && !WouldBlock(n.error())) co_return tl::unexpected(std::move(n).error());
    if (n) {
      if (*n == 0) co_return false;
      CO_TRY(co_await to.Write(std::string_view(buffer).substr(0, *n)));
      if (*n == buffer.size() && from.PlainSocket() >= 0 && to.PlainSocket() >= 0) co_return true;
    }
    buffer = std::string();
  }
}

// Through a pipe, inside the kernel, until the end.
Task<Status> SpliceAll(Stream& from, Stream& to) {
  CO_TRY_ASSIGN(Pipe pipe, MakePipe());
  size_t without_wait = 0;
  for (;;) {
    ssize_t got = Splice(from.PlainSocket(), pipe.in.get(), kPipeBytes);
    if (got == 0) co_return Status();
    if (got < 0) {
      if (errno != EAGAIN) co_return FailErrno("reading from a connection");
      without_wait = 0;
      CO_TRY(co_await from.WaitReadable());
      continue;
    }
    from.Progress();
    for (auto left = static_cast<size_t>(got); left > 0;) {
      ssize_t put = Splice(pipe.out.get(), to.PlainSocket(), left);
      if (put > 0) {
        to.Progress();
        left -= static_cast<size_t>(put);
      } else if (put < 0 && errno == EAGAIN) {
        without_wait = 0;
        CO_TRY(co_await to.WaitWritable());
      } else {
        co_return FailErrno("writing to a connection");
      }
    }
    if ((without_wait += static_cast<size_t>(got)) >= kShareAfter) {
      without_wait = 0;
      co_await asio::post(from.executor(), asio::use_awaitable);
    }
  }
}

Task<Status> MoveAll(Stream& from, Stream& to) {
  CO_TRY_ASSIGN(bool bulk, co_await CopySome(from, to));
  if (bulk) CO_TRY(co_await SpliceAll(from, to));
  co_return Status();
}

}  // namespace

Task<Status> Pump(Stream& from, Stream& to, std::chrono::milliseconds idle) {
  Status moved;
  {
    Watchdog reading(from), writing(to);
    auto scopes = std::pair(reading.Stall(idle), writing.Stall(idle));
    moved = co_await MoveAll(from, to);
    if (!moved && reading.expired())
      co_return Fail(Code::kDeadlineExceeded, "nothing moved for {} ms", idle.count());
  }
  if (moved) co_await to.ShutdownWrite();
  co_return moved;
}

}  // namespace caisson::http

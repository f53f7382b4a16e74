#include "http/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace caisson::http {
namespace {

constexpr size_t kPipeBytes = 256 << 10;

Result<size_t> Splice(int from, int to, size_t size, std::string_view doing) {
  ssize_t n;
  do {
    n = splice(from, nullptr, to, nullptr, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return FailErrno("{}", doing);
  return static_cast<size_t>(n);
}

}  // namespace

Result<Pipe> Pipe::Create() {
  int fds[2];
  if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0) return FailErrno("making a pipe");
  Pipe pipe{UniqueFd(fds[1]), UniqueFd(fds[0])};
  (void)fcntl(fds[1], F_SETPIPE_SZ, kPipeBytes);  // a smaller pipe works too
  return pipe;
}

Result<size_t> Pipe::TryFill(Stream& from, uint64_t max) {
  auto n = Splice(from.PlainSocket(), in_.get(), std::min<uint64_t>(max, kPipeBytes),
                  "reading from a connection");
  if (n) from.Progress();
  return n;
}

Task<Status> Pipe::Drain(Stream& to, size_t size) {
  while (size > 0) {
    auto n = Splice(out_.get(), to.PlainSocket(), size, "writing to a connection");
    if (n) {
      to.Progress();
      size -= *n;
    } else if (WouldBlock(n.error())) {
      CO_TRY(co_await to.WaitWritable());
    } else {
      co_return tl::unexpected(std::move(n).error());
    }
  }
  co_return Status();
}

}  // namespace caisson::http

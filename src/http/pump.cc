#include "http/pipe.h"
#include "http/stream.h"
#include "http/watchdog.h"

namespace caisson::http {
namespace {

constexpr size_t kCopyBytes = 16 << 10;
constexpr size_t kShareAfter = 1 << 20;

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
  CO_TRY_ASSIGN(Pipe pipe, Pipe::Create());
  size_t without_wait = 0;
  for (;;) {
    auto got = pipe.TryFill(from, UINT64_MAX);
    if (!got) {
      if (!WouldBlock(got.error())) co_return tl::unexpected(std::move(got).error());
      without_wait = 0;
      CO_TRY(co_await from.WaitReadable());
      continue;
    }
    if (*got == 0) co_return Status();
    CO_TRY(co_await pipe.Drain(to, *got));
    if ((without_wait += *got) >= kShareAfter) {
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

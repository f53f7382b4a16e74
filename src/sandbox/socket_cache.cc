#include "sandbox/socket_cache.h"

namespace caisson::sandbox {
namespace {

tl::unexpected<Error> NotRunning(const Record& record) {
  return Fail(Code::kNotFound, "sandbox {} is not running", record.row.id);
}

}  // namespace

SocketCache::SocketCache(engine::Engine& engine, TaskGroup& group, size_t spares,
                         std::chrono::milliseconds timeout)
    : engine_(engine),
      group_(group),
      batch_(std::clamp<size_t>(spares, 1, kMaxFdsPerMessage)),
      timeout_(timeout),
      fetched_(group.executor()) {}

Task<Result<UniqueFd>> SocketCache::Take(std::shared_ptr<Record> record) {
  auto deadline = std::chrono::steady_clock::now() + timeout_;
  while (record->running && record->spare_sockets.empty()) {
    if (!record->fetching_sockets) {
      CO_TRY(co_await Fetch(record));
    } else if (!co_await fetched_.Wait(deadline)) {
      co_return Fail(Code::kDeadlineExceeded, "getting a socket into sandbox {} took too long",
                     record->row.id);
    }
  }
  if (!record->running) co_return NotRunning(*record);
  UniqueFd socket = std::move(record->spare_sockets.back());
  record->spare_sockets.pop_back();
  // Before the last one is taken, so that a steady stream of requests never waits.
  if (record->spare_sockets.size() <= batch_ / 4 && !record->fetching_sockets)
    group_.Spawn("fetch sockets", FetchAhead(record));
  co_return socket;
}

Task<Status> SocketCache::Fetch(std::shared_ptr<Record> record) {
  // However this ends (cancellation included), others may try again.
  struct Busy {
    Record& record;
    Condition& fetched;
    ~Busy() {
      record.fetching_sockets = false;
      fetched.Notify();
    }
  };
  record->fetching_sockets = true;
  Busy busy{*record, fetched_};
  size_t wanted = batch_ - std::min(batch_, record->spare_sockets.size());
  CO_TRY_ASSIGN(auto sockets, co_await WithDeadline<std::vector<UniqueFd>>(
                                  timeout_, "getting a socket into the sandbox",
                                  engine_.Dial(record->row.id, wanted)));
  if (!record->running) co_return NotRunning(*record);
  for (UniqueFd& socket : sockets) record->spare_sockets.push_back(std::move(socket));
  if (record->spare_sockets.empty())
    co_return Fail(Code::kUnavailable, "the engine gave no socket into sandbox {}", record->row.id);
  co_return Status();
}

Task<void> SocketCache::FetchAhead(std::shared_ptr<Record> record) {
  if (record->fetching_sockets || !record->running) co_return;
  // A failure shows again, to the one who needs the next socket.
  (void)co_await Fetch(record);
}

}  // namespace caisson::sandbox

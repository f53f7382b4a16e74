#include "sdk/tunnel.h"

#include "base/log.h"
#include "sdk/private_listener.h"
#include "sdk/tunnel_connections.h"

namespace caisson::sdk {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr size_t kInput = 256 << 10;  // bytes of one call
// How often it is looked whether the socket is still somebody's.
constexpr milliseconds kWatchInterval{1'000};
constexpr milliseconds kMinPause{200}, kMaxPause{10'000};
// So often in a row a relay is replaced; after one that lasted the counting begins anew.
constexpr int kMaxReplacements = 60;
constexpr std::chrono::minutes kLasting{1};
constexpr milliseconds kKillTimeout{5'000}, kCloseTimeout{15'000};

bool MayPass(const Error& error) {
  return error.code() == Code::kUnavailable || error.code() == Code::kDeadlineExceeded ||
         error.code() == Code::kResourceExhausted;
}

}  // namespace

class Tunnel::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::any_io_executor executor, std::string sandbox_id, Reach reach, uint16_t port,
       TunnelLimits limits)
      : executor_(executor),
        sandbox_id_(std::move(sandbox_id)),
        reach_(std::move(reach)),
        port_(port),
        limits_(limits),
        changed_(executor),
        running_(executor) {}

  Task<Result<UniqueFd>> Open() {
    CO_TRY_ASSIGN(PrivateListener::Made made, PrivateListener::Make());
    listener_ = std::move(made.listener);
    CO_TRY_ASSIGN(auto relay, co_await StartRelay());
    if (closing_) {
      (void)co_await relay->Kill();
      co_return Fail(Code::kAborted, "the port is listened on anew");
    }
    open_ = true;
    running_.Spawn("tunnel", Run(shared_from_this(), std::move(relay)));
    co_return std::move(made.socket);
  }

  void End() {
    closing_ = true;
    changed_.Notify();
  }

  Task<void> Close() {
    auto self = shared_from_this();
    End();
    if (!co_await running_.Join(kCloseTimeout)) co_await running_.Stop();
  }

  bool is_open() const { return open_ && !closing_; }

 private:
  using Relay = std::unique_ptr<TunnelRelay>;

  Task<Result<Relay>> StartRelay() {
    CO_TRY_ASSIGN(EnvdClient envd, co_await reach_());
    auto relay = std::make_unique<TunnelRelay>(envd, port_, limits_);
    CO_TRY(co_await relay->Start());
    co_return std::move(relay);
  }

  // Only in a sandbox that runs: a paused one might be woken by the call.
  Task<Status> EndRelay(TunnelRelay& relay) {
    CO_TRY(co_await reach_());
    co_return co_await relay.Kill();
  }

  static Task<void> Run(std::shared_ptr<Impl> self, Relay relay) {
    // What it has begun is put away in order also when it is told to stop.
    co_await asio::this_coro::throw_if_cancelled(false);
    Error why = co_await self->Live(std::move(relay));
    self->open_ = false;
    // SECURITY: whoever speaks there is not our relay, or wants to see how much we bear.
    self->Tell(why.code() == Code::kDataLoss ? LogLevel::kWarn : LogLevel::kInfo,
               "a tunnel into a sandbox has ended", why);
  }

  // Why it has ended for good.
  Task<Error> Live(Relay relay) {
    for (int replacements = 0;;) {
      auto begun = Clock::now();
      Error why = co_await Carry(*relay);
      if (!wanted() || why.code() == Code::kDataLoss) {
        (void)co_await WithDeadline(kKillTimeout, "ending the relay", EndRelay(*relay));
        co_return why;
      }
      Tell(LogLevel::kInfo, "a tunnel into a sandbox broke", why);
      if (Clock::now() - begun > kLasting) replacements = 0;
      auto next = co_await Replace(replacements);
      if (!next) co_return std::move(next).error();
      relay = std::move(*next);
    }
  }

  Task<Result<Relay>> Replace(int& replacements) {
    Error why(Code::kUnavailable, "it broke too often");
    while (replacements < kMaxReplacements) {
      auto until =
          Clock::now() + std::min(kMaxPause, kMinPause * (1 << std::min(replacements, 10)));
      ++replacements;
      while (wanted() && Clock::now() < until)
        co_await changed_.Wait(std::min(until, Clock::now() + kWatchInterval));
      if (!wanted()) co_return tl::unexpected(NotNeeded());
      auto relay = co_await StartRelay();
      if (relay || !MayPass(relay.error())) co_return relay;
      why = relay.error();
    }
    co_return tl::unexpected(why);
  }

  // As long as the relay lives and somebody listens; why not any longer.
  Task<Error> Carry(TunnelRelay& relay) {
    std::optional<Error> end;
    TunnelConnections connections(executor_, listener_, limits_);
    TaskGroup group(executor_);
    auto done = [&](Error why) {
      if (!end) end = std::move(why);
      changed_.Notify();
    };
    group.Spawn("tunnel reader", Read(relay, connections, done));
    group.Spawn("tunnel writer", Write(relay, connections, done));
    while (!end && wanted()) co_await changed_.Wait(kWatchInterval);
    co_await group.Stop();
    co_await connections.Stop();
    co_return end.value_or(NotNeeded());
  }

  using Done = std::function<void(Error)>;

  static Task<void> Read(TunnelRelay& relay, TunnelConnections& connections, Done done) {
    for (;;) {
      auto frame = co_await relay.Next();
      Status taken = frame ? connections.Take(std::move(*frame))
                           : Status(tl::unexpect, std::move(frame).error());
      if (!taken) co_return done(taken.error());
    }
  }

  static Task<void> Write(TunnelRelay& relay, TunnelConnections& connections, Done done) {
    for (;;) {
      Status sent = co_await relay.Send(co_await connections.NextOutput(kInput));
      if (!sent) co_return done(sent.error());
    }
  }

  bool wanted() const { return !closing_ && listener_.IsOpen(); }
  static Error NotNeeded() { return Error(Code::kCanceled, "it is not needed any more"); }
  void Tell(LogLevel level, std::string_view what, const Error& why) const {
    Log(level, what, {{"sandbox_id", sandbox_id_}, {"port", port_}, {"error", why.message()}});
  }

  asio::any_io_executor executor_;
  const std::string sandbox_id_;
  const Reach reach_;
  const uint16_t port_;
  const TunnelLimits limits_;
  PrivateListener listener_;
  Condition changed_;
  bool open_ = false, closing_ = false;
  TaskGroup running_;
};

Tunnel::Tunnel(asio::any_io_executor executor, std::string sandbox_id, Reach reach, uint16_t port,
               TunnelLimits limits)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(sandbox_id), std::move(reach),
                                   port, limits)) {}
Tunnel::~Tunnel() { impl_->End(); }

Task<Result<UniqueFd>> Tunnel::Open() { return impl_->Open(); }
bool Tunnel::is_open() const { return impl_->is_open(); }
Task<void> Tunnel::Close() { return impl_->Close(); }

}  // namespace caisson::sdk

#include "gateway/flow.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "base/log.h"
#include "gateway/connect.h"
#include "http/tls.h"

namespace caisson::gateway {
namespace {

using namespace asio::experimental::awaitable_operators;

constexpr size_t kBufferBytes = 64 << 10;
// A body that fits into one segment travels together with its head.
constexpr uint64_t kSmallBody = 16 << 10;
// From this length on a pipe costs less than copying.
constexpr uint64_t kBulkBody = 256 << 10;
// envd died: how long the news may take to get here from the engine.
constexpr std::chrono::milliseconds kNewsDelay{250};

// Waits until it is canceled.
Task<void> Forever() {
  asio::steady_timer never(co_await asio::this_coro::executor, Clock::time_point::max());
  co_await never.async_wait(kAwait);
}

// What a body is carried in from one side to the other: memory, or a pipe if it is large.
class Carrier {
 public:
  explicit Carrier(std::optional<uint64_t> length) : bulk_(length && *length >= kBulkBody) {}

  bool WantsPipe() {
    if (!bulk_ || pipe_) return bulk_;
    auto made = http::Pipe::Create();
    if (made) pipe_.emplace(std::move(*made));
    return bulk_ = pipe_.has_value();
  }
  http::Pipe& pipe() { return *pipe_; }
  std::span<char> buffer() {
    buffer_.resize(kBufferBytes);
    return buffer_;
  }
  std::string_view data(size_t size) const { return std::string_view(buffer_).substr(0, size); }

 private:
  bool bulk_;
  std::optional<http::Pipe> pipe_;
  std::string buffer_;
};

bool HasNoBody(const std::string& method, unsigned status) {
  return method == "HEAD" || status == 204 || status == 304;
}

}  // namespace

Flow::Flow(Context& context, std::shared_ptr<Lane> lane, http::Exchange& exchange, Passage passage)
    : context_(context),
      lane_(std::move(lane)),
      place_(lane_->Enter(this)),
      exchange_(exchange),
      passage_(std::move(passage)),
      pause_(exchange.executor()) {
  context_.numbers.in_flight.Add(1);
}

Flow::~Flow() {
  context_.numbers.in_flight.Add(-1);
  lane_->Leave(place_);
}

void Flow::End(Cut cut) {
  if (cut_ != Cut::kNone) return;
  cut_ = cut;
  pause_.cancel();
  if (connection_) connection_->Close();
  if (client_stream_) client_stream_->Close(/*reset=*/true);
  if (sandbox_stream_) sandbox_stream_->Close(/*reset=*/true);
  if (!client_stream_ && exchange_.answered()) exchange_.Abort();
}

Task<void> Flow::Run() {
  // A reused connection may turn out to be closed just when it is used. Then the request is sent
  // again, which is only right if none of its body is gone. envd does not close idle connections.
  bool may_reuse = !IsUpgrade(exchange_.request()) && (to_envd() || !exchange_.HasBody());
  if (lane_->gone()) cut_ = Cut::kSandboxGone;
  for (;;) {
    connection_ = may_reuse ? lane_->TakeIdle(passage_.port) : nullptr;
    pooled_ = connection_ != nullptr;
    if (pooled_) {
      context_.numbers.connections_reused.Add();
    } else {
      connection_ = co_await Connect();
      if (!connection_) co_return co_await Refuse();
    }
    Outcome outcome = co_await Attempt();
    if (outcome == Outcome::kNoAnswer && pooled_ && !body_begun_ && cut_ == Cut::kNone) {
      may_reuse = false;
      continue;
    }
    co_return co_await Conclude(outcome);
  }
}

Task<std::unique_ptr<http::ClientConnection>> Flow::Connect() {
  const auto& pauses = context_.options.retry_pauses;
  for (size_t attempt = 0;; ++attempt) {
    auto made = co_await TryConnect();
    if (made) {
      context_.numbers.connections_made.Add();
      co_return std::move(*made);
    }
    error_ = made.error();
    if (error_->sys_errno() != ECONNREFUSED) co_return nullptr;
    context_.numbers.connections_refused.Add();
    if (attempt == pauses.size()) co_return nullptr;
    co_await Pause(pauses[attempt]);
    if (cut_ != Cut::kNone) co_return nullptr;
  }
}

Task<Result<std::unique_ptr<http::ClientConnection>>> Flow::TryConnect() {
  CO_TRY_ASSIGN(UniqueFd socket,
                co_await ConnectLoopback(context_.directory, lane_->id(), passage_.port,
                                         context_.options.connect_timeout));
  http::ClientOptions options{.max_header_bytes = context_.options.max_header_bytes,
                              .stall_timeout = context_.options.idle_timeout};
  if (passage_.to_tls) {
    CO_TRY_ASSIGN(auto secured, co_await http::StartUncheckedTls(std::move(socket),
                                                                 context_.options.connect_timeout));
    co_return std::make_unique<http::ClientConnection>(std::move(secured), options);
  }
  CO_TRY_ASSIGN(auto stream, http::MakeSocketStream(exchange_.executor(), std::move(socket)));
  co_return std::make_unique<http::ClientConnection>(std::move(stream), options);
}

Task<Flow::Outcome> Flow::Attempt() {
  if (cut_ != Cut::kNone) co_return Outcome::kNoAnswer;
  std::optional<uint64_t> length = exchange_.HasBody() ? exchange_.ContentLength() : 0;
  std::string first;
  if (length && *length > 0 && *length <= kSmallBody) {
    first.resize(*length);
    auto read = co_await exchange_.Read(first);
    if (!read) co_return Outcome::kClientGone;
    body_begun_ = true;
    first.resize(*read);
    context_.numbers.bytes_in.Add(static_cast<double>(*read));
  }
  Status sent =
      co_await connection_->SendHead(ForSandbox(exchange_.request(), passage_), length, first);
  if (!sent) {
    error_ = std::move(sent).error();
    co_return Outcome::kNoAnswer;
  }
  Moved();
  auto winner = co_await (Receive() || Supply());
  co_return winner.index() == 0 ? std::get<0>(winner) : Outcome::kClientGone;
}

// Passes the request's body on. Returns only when the client is gone; otherwise it is canceled when
// the answer is complete.
Task<void> Flow::Supply() {
  Carrier carrier(exchange_.HasBody() ? exchange_.ContentLength() : 0);
  body_sent_ = !exchange_.HasBody();
  while (!body_sent_) {
    bool piped = carrier.WantsPipe() && exchange_.CanReadPipe() && connection_->CanWritePipe();
    auto read = piped ? co_await exchange_.ReadPipe(carrier.pipe())
                      : co_await exchange_.Read(carrier.buffer());
    if (!read) co_return;
    body_begun_ = true;
    Status written = *read == 0 ? co_await connection_->FinishBody()
                     : piped    ? co_await connection_->WritePipe(carrier.pipe(), *read)
                                : co_await connection_->WriteBody(carrier.data(*read));
    // A server that does not want the rest may still send an answer that says so.
    if (!written) co_return co_await Forever();
    Moved();
    context_.numbers.bytes_in.Add(static_cast<double>(*read));
    body_sent_ = *read == 0;
  }
  co_await exchange_.ClientGone();
}

Task<Flow::Outcome> Flow::Receive() {
  auto head = co_await connection_->ReadHead();
  if (!head) {
    error_ = std::move(head).error();
    co_return Outcome::kNoAnswer;
  }
  Moved();
  pooled_ = false;  // it answers, so it was not closed while idle
  std::chrono::duration<double> waited = Clock::now() - begun_;
  context_.numbers.ObserveHead(to_envd(), waited.count());
  bool upgraded = head->status == 101;
  if (upgraded && !IsUpgrade(exchange_.request())) {
    error_ = Error(Code::kInternal, "it switched protocols without being asked");
    co_return Outcome::kNoAnswer;
  }
  ForClient(head->headers, upgraded);
  if (upgraded) {
    upgrade_head_ = std::move(*head);
    co_return Outcome::kUpgraded;
  }
  if (to_envd()) AllowAnyOrigin(head->headers);
  if (passage_.own_origin) DistrustContent(head->headers);
  status_ = head->status;
  auto length = connection_->ContentLength();
  if (HasNoBody(exchange_.request().method, status_)) {
    if (!head->headers.Has("Content-Length")) length.reset();  // it did not say
    Status sent = co_await exchange_.StartStream(std::move(*head), length);
    if (sent) sent = co_await exchange_.FinishStream();
    co_return sent ? Outcome::kDone : Outcome::kClientGone;
  }
  if (length && *length <= kSmallBody) {
    std::string body(*length, '\0');
    auto read = *length ? co_await connection_->ReadBody(body) : Result<size_t>(0);
    if (!read) {
      error_ = std::move(read).error();
      co_return Outcome::kNoAnswer;
    }
    body.resize(*read);
    context_.numbers.bytes_out.Add(static_cast<double>(*read));
    Status sent = co_await exchange_.StartStream(std::move(*head), length, body);
    if (!sent) co_return Outcome::kClientGone;
  } else if (!co_await exchange_.StartStream(std::move(*head), length)) {
    co_return Outcome::kClientGone;
  }
  co_return co_await Relay();
}

// Passes the rest of the answer's body on.
Task<Flow::Outcome> Flow::Relay() {
  Carrier carrier(connection_->ContentLength());
  for (;;) {
    bool piped = carrier.WantsPipe() && connection_->CanReadPipe() && exchange_.CanWritePipe();
    auto read = piped ? co_await connection_->ReadPipe(carrier.pipe())
                      : co_await connection_->ReadBody(carrier.buffer());
    if (!read) {
      error_ = std::move(read).error();
      co_return Outcome::kBroken;
    }
    if (*read == 0) break;
    Moved();
    context_.numbers.bytes_out.Add(static_cast<double>(*read));
    Status written = piped ? co_await exchange_.WritePipe(carrier.pipe(), *read)
                           : co_await exchange_.Write(carrier.data(*read));
    if (!written) co_return Outcome::kClientGone;
    Moved();  // waiting for a slow client is not the sandbox's silence
  }
  // SECURITY: a sandbox that died may look like one that finished; never end its answers well.
  if (cut_ != Cut::kNone) co_return Outcome::kBroken;
  Status finished = co_await exchange_.FinishStream();
  co_return finished ? Outcome::kDone : Outcome::kClientGone;
}

Task<void> Flow::Conclude(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      Count(fmt::format("{}xx", status_ / 100));
      if (body_sent_ && connection_->Reusable())
        lane_->PutIdle(passage_.port, std::move(connection_));
      co_return;
    case Outcome::kUpgraded:
      Count("upgraded");
      co_return co_await Tunnel();
    case Outcome::kNoAnswer:
      connection_->Close();
      co_return co_await Refuse();
    case Outcome::kBroken:
      Count("cut");
      connection_->Close();
      co_return exchange_.Abort();
    case Outcome::kClientGone:
      Count("client_gone");
      connection_->Close();
  }
}

namespace {

// One direction of a tunnel; an error in it ends both.
Task<void> PumpOrReset(http::Stream& from, http::Stream& to, std::chrono::milliseconds idle) {
  Status pumped = co_await http::Pump(from, to, idle);
  if (pumped) co_return;
  from.Close(/*reset=*/true);
  to.Close(/*reset=*/true);
}

}  // namespace

Task<void> Flow::Tunnel() {
  std::string from_sandbox, from_client;
  auto client = exchange_.Upgrade(from_client);
  if (!client) co_return connection_->Close();
  client_stream_ = std::move(*client);
  sandbox_stream_ = connection_->TakeStream(from_sandbox);
  if (cut_ != Cut::kNone) co_return client_stream_->Close(/*reset=*/true);

  std::string head = "HTTP/1.1 101 Switching Protocols\r\n";
  for (const auto& [name, value] : upgrade_head_.headers)
    head += fmt::format("{}: {}\r\n", name, value);
  head += "\r\n";
  Status begun = co_await client_stream_->Write(head, from_sandbox);
  if (begun && !from_client.empty()) begun = co_await sandbox_stream_->Write(from_client);
  if (!begun) co_return;
  co_await (PumpOrReset(*client_stream_, *sandbox_stream_, context_.options.idle_timeout) &&
            PumpOrReset(*sandbox_stream_, *client_stream_, context_.options.idle_timeout));
}

Task<void> Flow::Refuse() {
  Problem problem = co_await Explain();
  Count(fmt::format("{}xx", problem.status / 100));
  (void)co_await exchange_.Send(Render(problem, exchange_.request()));
}

Task<Problem> Flow::Explain() {
  const std::string& id = lane_->id();
  int error_number = error_ ? error_->sys_errno() : 0;
  Code code = error_ ? error_->code() : Code::kUnknown;
  // Nothing but its death makes envd refuse or hang up; let the news arrive first.
  if (to_envd() && cut_ == Cut::kNone && code != Code::kDeadlineExceeded)
    co_await Pause(kNewsDelay);

  if (cut_ == Cut::kSandboxGone || code == Code::kNotFound) co_return SandboxNotFound(id);
  if (cut_ == Cut::kUnresponsive)
    co_return NoAnswer(id, "The sandbox is running but envd does not answer");
  if (to_envd()) {
    std::string reason = error_number == ECONNREFUSED ? "envd does not accept connections"
                                                      : "envd hung up without an answer";
    if (code == Code::kDeadlineExceeded) reason = "envd does not answer";
    context_.directory.ReportUnresponsive(id, reason);
    co_return NoAnswer(id, "The sandbox is running but " + reason);
  }
  if (error_number == ECONNREFUSED) co_return PortClosed(id, passage_.port);
  Problem problem = NoAnswer(id, "The server on this port hung up without a complete answer");
  problem.port = passage_.port;
  if (code == Code::kDeadlineExceeded) {
    problem.status = 504;
    problem.message = "The server on this port does not answer";
  } else if (passage_.to_tls && !connection_) {
    problem.message =
        "The server on this port does not speak TLS, though network.httpsPorts says so";
  }
  LogDebug("no answer from a port of a sandbox",
           {{"sandbox", id}, {"port", passage_.port}, {"error", error_ ? error_->message() : ""}});
  co_return problem;
}

Task<void> Flow::Pause(std::chrono::milliseconds duration) {
  pause_.expires_after(duration);
  co_await pause_.async_wait(kAwait);
}

void Flow::Count(std::string_view result) { context_.numbers.CountRequest(to_envd(), result); }

}  // namespace caisson::gateway

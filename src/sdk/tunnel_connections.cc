#include "sdk/tunnel_connections.h"

#include <sys/socket.h>

#include "base/log.h"

namespace caisson::sdk {
namespace {

using Kind = TunnelFrame::Kind;

// Data waits for room; every connection may have read one piece when it is gone. The frames that
// say something of connections are small, and so many may come on top.
constexpr size_t kMaxOutput = 512 << 10, kMaxSmallFrames = 256 << 10;
// Whoever waits is woken; this only makes the waits finite ones.
constexpr std::chrono::minutes kWait{10};

// The other side has closed its socket, and not only ended what it sends: even nothing cannot be
// written to it.
bool IsClosed(const http::Stream& stream) {
  return send(stream.PlainSocket(), nullptr, 0, MSG_NOSIGNAL | MSG_DONTWAIT) < 0;
}

}  // namespace

struct TunnelConnections::Connection {
  Connection(asio::any_io_executor executor, uint32_t its_number, size_t window,
             std::unique_ptr<http::Stream> its_socket)
      : number(its_number), socket(std::move(its_socket)), credit(window), changed(executor) {}

  const uint32_t number;
  std::unique_ptr<http::Stream> socket;
  size_t credit;          // what may be sent inside
  std::string inbox;      // came from inside
  size_t untaken = 0;     // bytes that came and have not been given back as credit
  size_t delivered = 0;   // of those
  bool ended = false;     // nothing more comes from inside
  bool finished = false;  // nothing more goes inside
  bool closed = false;    // inside it is gone
  bool dropped = false;
  Condition changed;
};

TunnelConnections::TunnelConnections(asio::any_io_executor executor,
                                     const PrivateListener& listener, TunnelLimits limits)
    : executor_(executor),
      listener_(listener),
      limits_(limits),
      has_output_(executor),
      tasks_(executor) {}

Status TunnelConnections::Take(TunnelFrame frame) {
  if (output_.size() > kMaxOutput + limits_.connections * kMaxTunnelData + kMaxSmallFrames)
    return Fail(Code::kDataLoss, "the relay does not take what it is sent");
  if (frame.kind == Kind::kReady) return Fail(Code::kDataLoss, "the relay began a second time");
  if (frame.kind == Kind::kOpen) return Open(frame.connection);
  auto found = connections_.find(frame.connection);
  if (found == connections_.end()) {
    // The relay could not know yet that it is gone.
    if (frame.connection <= last_) return {};
    return Fail(Code::kDataLoss, "a frame of connection {}, which was never opened",
                frame.connection);
  }
  Connection& connection = *found->second;
  if (frame.kind == Kind::kCredit) {
    uint32_t more = CreditOf(frame);
    if (more > limits_.window - connection.credit)
      return Fail(Code::kDataLoss, "credit for more than was sent");
    connection.credit += more;
  } else if (connection.ended || frame.data.size() > limits_.window - connection.untaken) {
    return Fail(Code::kDataLoss, "more bytes of a connection than it may send");
  } else {
    connection.inbox += frame.data;
    connection.untaken += frame.data.size();
    connection.ended = frame.kind != Kind::kData;
    connection.closed = frame.kind == Kind::kClosed;
  }
  connection.changed.Notify();
  return {};
}

Status TunnelConnections::Open(uint32_t number) {
  if (number <= last_) return Fail(Code::kDataLoss, "connection {} was opened before", number);
  last_ = number;
  auto refuse = [&](std::string_view why) -> Status {
    LogDebug("a connection from a sandbox is not taken", {{"why", why}});
    AppendFrame(output_, number, Kind::kClosed);
    has_output_.Notify();
    return {};
  };
  // Not a mistake of the relay's: it may know of ends that are still under way here.
  if (connections_.size() >= limits_.connections) return refuse("there are too many");
  auto socket = listener_.Connect();
  if (!socket && socket.error().sys_errno() == ECONNREFUSED)
    return Fail(Code::kCanceled, "nobody listens any more");
  if (!socket) return refuse(socket.error().message());
  auto stream = http::MakeSocketStream(executor_, std::move(*socket));
  if (!stream) return refuse(stream.error().message());
  auto connection =
      std::make_shared<Connection>(executor_, number, limits_.window, std::move(*stream));
  connections_[number] = connection;
  tasks_.Spawn("tunnel inwards", Inwards(connection));
  tasks_.Spawn("tunnel outwards", Outwards(connection));
  return {};
}

void TunnelConnections::Send(const Connection& connection, Kind kind, std::string_view data) {
  AppendFrame(output_, connection.number, kind, data);
  has_output_.Notify();
}

void TunnelConnections::Drop(Shared connection, bool tell) {
  if (std::exchange(connection->dropped, true)) return;
  if (tell) Send(*connection, Kind::kClosed);
  connections_.erase(connection->number);
  connection->socket->Close();
  connection->changed.Notify();
}

// From who listens here to who connected inside.
Task<void> TunnelConnections::Inwards(Shared connection) {
  std::string buffer(kMaxTunnelData, '\0');
  for (;;) {
    while (!connection->dropped && (connection->credit == 0 || output_.size() >= kMaxOutput))
      co_await connection->changed.Wait(kWait);
    if (connection->dropped) co_return;
    auto read = co_await connection->socket->Read(
        std::span(buffer).first(std::min(connection->credit, buffer.size())));
    if (connection->dropped) co_return;
    if (!read) co_return Drop(connection, true);
    if (*read == 0) break;
    connection->credit -= *read;
    Send(*connection, Kind::kData, std::string_view(buffer).substr(0, *read));
  }
  connection->finished = true;
  Send(*connection, Kind::kEnd);
  if (connection->ended && connection->untaken == 0) co_return Drop(connection, false);
  // Who has closed takes nothing any more, and the one inside shall learn it.
  if (!IsClosed(*connection->socket)) (void)co_await connection->socket->WaitBroken();
  Drop(connection, true);
}

// From who connected inside to who listens here.
Task<void> TunnelConnections::Outwards(Shared connection) {
  for (;;) {
    while (!connection->dropped && connection->inbox.empty() && !connection->ended)
      co_await connection->changed.Wait(kWait);
    if (connection->dropped) co_return;
    if (connection->inbox.empty()) break;
    co_await Deliver(connection);
  }
  if (connection->closed || connection->finished) co_return Drop(connection, false);
  co_await connection->socket->ShutdownWrite();
}

Task<void> TunnelConnections::Deliver(Shared connection) {
  std::string piece = std::exchange(connection->inbox, "");
  Status written = co_await connection->socket->Write(piece);
  if (connection->dropped) co_return;
  if (!written) co_return Drop(connection, true);
  connection->untaken -= piece.size();
  connection->delivered += piece.size();
  // Not after each byte: the relay may not read what it makes us say.
  if (connection->delivered < limits_.window / 4) co_return;
  AppendCredit(output_, connection->number, std::exchange(connection->delivered, 0));
  has_output_.Notify();
}

Task<std::string> TunnelConnections::NextOutput(size_t size) {
  while (output_.empty()) co_await has_output_.Wait(kWait);
  std::string piece = output_.substr(0, size);
  output_.erase(0, piece.size());
  for (auto& [number, connection] : connections_) connection->changed.Notify();
  co_return piece;
}

Task<void> TunnelConnections::Stop() {
  while (!connections_.empty()) Drop(connections_.begin()->second, false);
  co_await tasks_.Stop();
}

}  // namespace caisson::sdk

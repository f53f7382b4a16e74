// The end of a tunnel that is here: every connection that somebody opens inside becomes one to the
// socket that listens for it, and its bytes are carried both ways.
//
// SECURITY: what comes from a sandbox is hostile. A connection holds at most the limits' window
// each way, there are so many of them, and frames that do not fit are an error, which ends the
// tunnel.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/async.h"
#include "http/stream.h"
#include "sdk/private_listener.h"
#include "sdk/tunnel_frame.h"
#include "sdk/tunnel_relay.h"

namespace caisson::sdk {

class TunnelConnections {
 public:
  // `listener` outlives it.
  TunnelConnections(asio::any_io_executor executor, const PrivateListener& listener,
                    TunnelLimits limits);

  // A frame from inside; never waits. kDataLoss: it cannot be, or nobody inside takes what we send;
  // kCanceled: nobody listens here any more.
  Status Take(TunnelFrame frame);
  // Frames for inside, as soon as there are any; at least one, about `size` bytes.
  Task<std::string> NextOutput(size_t size);
  Task<void> Stop();
  size_t size() const { return connections_.size(); }
  bool idle() const { return tasks_.size() == 0; }  // nothing is under way

 private:
  struct Connection;
  using Shared = std::shared_ptr<Connection>;

  Status Open(uint32_t number);
  // Both go on until their direction has ended, or the connection is gone.
  Task<void> Inwards(Shared connection);
  Task<void> Outwards(Shared connection);
  Task<void> Deliver(Shared connection);
  void Send(const Connection& connection, TunnelFrame::Kind kind, std::string_view data = {});
  // Forgets it; `tell` the relay, too.
  void Drop(Shared connection, bool tell);

  asio::any_io_executor executor_;
  const PrivateListener& listener_;
  const TunnelLimits limits_;
  std::map<uint32_t, Shared> connections_;
  uint32_t last_ = 0;  // the newest number
  std::string output_;
  Condition has_output_;
  TaskGroup tasks_;
};

}  // namespace caisson::sdk

// The end of a tunnel that is inside the sandbox: a small Python program which listens on a port of
// its loopback and speaks frames over its input and output.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <string>

#include "sdk/envd_client.h"
#include "sdk/process_stream.h"
#include "sdk/tunnel_frame.h"

namespace caisson::sdk {

struct TunnelLimits {
  size_t connections = 32;    // at once; more are closed
  size_t window = 512 << 10;  // bytes of one connection and direction that wait to be taken
};

class TunnelRelay {
 public:
  TunnelRelay(const EnvdClient& client, uint16_t port, TunnelLimits limits);

  // Returns when it listens. One that was left behind by another server is ended before.
  // kFailedPrecondition: it cannot, and the text says why: no python3, or somebody has the port.
  Task<Status> Start();
  // The next frame. kFailedPrecondition: it has ended; kUnavailable: the connection was lost;
  // kDataLoss: it is not what we started.
  Task<Result<TunnelFrame>> Next();
  // Frames for it. One call at a time. On failure it is not known what arrived.
  Task<Status> Send(std::string bytes);
  // Gone already is fine.
  Task<Status> Kill();

 private:
  Task<Status> Begin();
  Task<Status> Call(std::string procedure, boost::json::object message);

  std::shared_ptr<Transport> transport_;
  const uint16_t port_;
  const TunnelLimits limits_;
  const std::string tag_;
  int64_t pid_ = 0;
  std::optional<ProcessStream> events_;
  TunnelFrameReader frames_;
  std::string complaint_;  // what it wrote to stderr
  std::unique_ptr<http::ClientConnection> input_;
  std::chrono::steady_clock::time_point used_at_;
};

}  // namespace caisson::sdk

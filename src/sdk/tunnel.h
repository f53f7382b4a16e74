// A port inside a sandbox whose connections arrive here. Nothing of ours is needed inside, no
// address and no secret: everything goes over the input and output of a process, and the other way
// round nobody inside reaches more than the one socket that listens.
#pragma once

#include <functional>
#include <memory>

#include "base/async.h"
#include "base/fd.h"
#include "sdk/envd_client.h"
#include "sdk/tunnel_relay.h"

namespace caisson::sdk {

class Tunnel {
 public:
  // How the sandbox is reached now; asked for again when the way to it was lost. kUnavailable and
  // kDeadlineExceeded may pass, everything else ends the tunnel.
  using Reach = std::function<Task<Result<EnvdClient>>()>;

  Tunnel(asio::any_io_executor executor, std::string sandbox_id, Reach reach, uint16_t port,
         TunnelLimits limits);
  // The relay is ended behind it.
  ~Tunnel();

  // The socket to accept on, see PrivateListener; once. From now on it is open until that socket
  // is closed, the sandbox is paused or gone, what comes from there cannot be, or
  // Close(). A relay that dies and a connection that breaks off are replaced.
  Task<Result<UniqueFd>> Open();
  bool is_open() const;
  // Ends the relay, and waits for its end.
  Task<void> Close();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with its coroutines, which may end after it
};

}  // namespace caisson::sdk

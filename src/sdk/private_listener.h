// A listening socket of this process for this process. Whoever accepts has to ask who connects:
// http::Server takes nobody else at a Unix socket.
#pragma once

#include <string>

#include "base/fd.h"

namespace caisson::sdk {

class PrivateListener {
 public:
  // The socket goes to whoever accepts; connections are made here.
  struct Made;
  static Result<Made> Make();

  // A connected socket, not blocking. kUnavailable with ECONNREFUSED once nobody has the socket
  // any more; EAGAIN if too many wait there.
  Result<UniqueFd> Connect() const;
  // Whether anybody still has the socket.
  bool IsOpen() const;

 private:
  std::string name_;  // of the socket
};

struct PrivateListener::Made {
  UniqueFd socket;
  PrivateListener listener;
};

}  // namespace caisson::sdk

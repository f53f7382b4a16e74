#include "sdk/private_listener.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "base/id.h"

namespace caisson::sdk {
namespace {

constexpr int kBacklog = 128;

UniqueFd NewSocket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Binds or connects with an abstract name, which no file system has to hold. At a Unix socket
// neither waits.
int With(int (*call)(int, const sockaddr*, socklen_t), const UniqueFd& socket,
         const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return call(socket.get(), reinterpret_cast<const sockaddr*>(&address), size);
}

bool IsOurs(const UniqueFd& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.pid == getpid();
}

}  // namespace

Result<PrivateListener::Made> PrivateListener::Make() {
  Made made{.socket = NewSocket()};
  made.listener.name_ = RandomId("caisson-", 40);
  if (!made.socket || With(bind, made.socket, made.listener.name_) ||
      listen(made.socket.get(), kBacklog))
    return FailErrno("listening for a sandbox");
  return made;
}

Result<UniqueFd> PrivateListener::Connect() const {
  UniqueFd socket = NewSocket();
  if (!socket || With(connect, socket, name_))
    return FailErrno("connecting to who listens for a sandbox");
  // SECURITY: everybody on the machine can see the name, and take it when it is free again.
  if (!IsOurs(socket)) {
    errno = ECONNREFUSED;
    return FailErrno("connecting to who listens for a sandbox");
  }
  return socket;
}

bool PrivateListener::IsOpen() const {
  // Only a name that nobody has can be taken.
  UniqueFd socket = NewSocket();
  return socket && With(bind, socket, name_) != 0;
}

}  // namespace caisson::sdk

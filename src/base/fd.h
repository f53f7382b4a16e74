// Owned file descriptors, and passing them over Unix sockets.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace caisson {

// Closes its descriptor when it goes away. Move-only; -1 is empty.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    Reset(other.Release());
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

// A datagram (SOCK_SEQPACKET) message with descriptors.
struct FdMessage {
  std::string data;
  std::vector<UniqueFd> fds;
};

// At most this many descriptors travel in one message.
inline constexpr size_t kMaxFdsPerMessage = 32;

// Sends one whole message. A full buffer on a non-blocking socket is kResourceExhausted (EAGAIN).
Status SendMessage(int socket, std::string_view data, const std::vector<int>& fds = {});
// Receives one whole message of at most `max_size` bytes; received descriptors are close-on-exec.
// An orderly end is kUnavailable with errno 0; nothing there on a non-blocking socket is EAGAIN;
// a longer message is kOutOfRange.
Result<FdMessage> ReceiveMessage(int socket, size_t max_size);

Status SetNonBlocking(int fd);
// Another descriptor of the same, close-on-exec.
Result<UniqueFd> Duplicate(int fd);

}  // namespace caisson

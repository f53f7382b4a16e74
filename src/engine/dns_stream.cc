#include "engine/dns_stream.h"

#include <sys/socket.h>

#include <cerrno>

namespace caisson::engine {
namespace {

constexpr size_t kMaxMessage = 65'535;

size_t LengthOf(std::string_view bytes) {
  return static_cast<size_t>(static_cast<unsigned char>(bytes[0])) << 8 |
         static_cast<unsigned char>(bytes[1]);
}

}  // namespace

std::optional<std::string> DnsStream::Read() {
  while (!ended_) {
    size_t wanted = incoming_.size() < 2 ? 2 : 2 + LengthOf(incoming_);
    if (incoming_.size() >= 2 && incoming_.size() == wanted) {
      std::string message = incoming_.substr(2);
      incoming_.clear();
      return message;
    }
    char buffer[4096];
    ssize_t n =
        recv(fd_.get(), buffer, std::min(sizeof buffer, wanted - incoming_.size()), MSG_DONTWAIT);
    if (n > 0)
      incoming_.append(buffer, static_cast<size_t>(n));
    else if (n < 0 && errno == EINTR)
      continue;
    else if (n < 0 && errno == EAGAIN)
      return std::nullopt;
    else
      ended_ = true;
  }
  return std::nullopt;
}

void DnsStream::Write(std::string_view message) {
  if (message.size() > kMaxMessage) return;
  outgoing_ += static_cast<char>(message.size() >> 8);
  outgoing_ += static_cast<char>(message.size());
  outgoing_ += message;
  Flush();
}

void DnsStream::Flush() {
  while (wants_to_write()) {
    ssize_t n = send(fd_.get(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
      outgoing_.erase(0, static_cast<size_t>(n));
    else if (n < 0 && errno == EINTR)
      continue;
    else if (n < 0 && (errno == EAGAIN || errno == EINPROGRESS || errno == ENOTCONN))
      return;
    else
      ended_ = true;
  }
}

}  // namespace caisson::engine

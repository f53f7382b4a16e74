// DNS over a TCP socket: messages with their length in front. Non-blocking; holds at most one
// message in each direction beyond what the kernel holds.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"

namespace caisson::engine {

class DnsStream {
 public:
  explicit DnsStream(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // Reads what is there. A message, if one is complete; ended() when there will be no more.
  std::optional<std::string> Read();
  bool ended() const { return ended_; }
  // Takes a message and writes what can be written.
  void Write(std::string_view message);
  void Flush();
  bool wants_to_write() const { return !outgoing_.empty() && !ended_; }

 private:
  UniqueFd fd_;
  std::string incoming_, outgoing_;
  bool ended_ = false;
};

}  // namespace caisson::engine

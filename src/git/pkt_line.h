// Git's packet lines: four hexadecimal digits of length, themselves included, then the payload.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::git {

inline constexpr std::string_view kFlush = "0000";
inline constexpr size_t kMaxPacket = 65'520;  // git's own limit, its length included

// "0006a\n" of "a\n". At most kMaxPacket - 4 bytes.
std::string Packet(std::string_view payload);

struct PacketView {
  std::string_view payload;
  bool flush = false;
  size_t size = 0;  // of the whole packet
};
// The packet that `data` begins with; nothing if it is not complete yet. kInvalidArgument if it is
// none, or one of the kinds that only other messages have (delimiter, end of response).
Result<std::optional<PacketView>> ReadPacket(std::string_view data);

// Finds the end of a list of packets in a stream, without keeping any of it.
class PacketScanner {
 public:
  // How much of `data` belongs to the list: all of it, or up to and with the flush that ends it.
  // kInvalidArgument if it is no list of packets.
  Result<size_t> Feed(std::string_view data);
  bool flushed() const { return flushed_; }

 private:
  std::string digits_;  // of a length that is not complete yet
  size_t left_ = 0;     // of the current packet
  bool flushed_ = false;
};

}  // namespace caisson::git

#include "git/pkt_line.h"

#include <fmt/format.h>

#include <algorithm>

namespace caisson::git {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Of a whole packet, 0 for a flush.
Result<size_t> LengthOf(std::string_view digits) {
  size_t length = 0;
  for (char c : digits) {
    int digit = HexDigit(c);
    if (digit < 0) return Fail(Code::kInvalidArgument, "This is not git's protocol.");
    length = length * 16 + static_cast<size_t>(digit);
  }
  if (length != 0 && (length <= 4 || length > kMaxPacket))
    return Fail(Code::kInvalidArgument, "A packet of {} bytes does not belong here.", length);
  return length;
}

}  // namespace

std::string Packet(std::string_view payload) {
  payload = payload.substr(0, kMaxPacket - 4);
  return fmt::format("{:04x}{}", payload.size() + 4, payload);
}

Result<std::optional<PacketView>> ReadPacket(std::string_view data) {
  if (data.size() < 4) {
    bool digits = std::all_of(data.begin(), data.end(), [](char c) { return HexDigit(c) >= 0; });
    if (!digits) return Fail(Code::kInvalidArgument, "This is not git's protocol.");
    return std::nullopt;
  }
  TRY_ASSIGN(size_t length, LengthOf(data.substr(0, 4)));
  if (length == 0) return PacketView{.flush = true, .size = 4};
  if (data.size() < length) return std::nullopt;
  return PacketView{.payload = data.substr(4, length - 4), .size = length};
}

Result<size_t> PacketScanner::Feed(std::string_view data) {
  size_t at = 0;
  while (at < data.size() && !flushed_) {
    if (left_ > 0) {
      size_t skipped = std::min(left_, data.size() - at);
      left_ -= skipped;
      at += skipped;
      continue;
    }
    digits_ += data[at++];
    if (digits_.size() < 4) continue;
    TRY_ASSIGN(size_t length, LengthOf(digits_));
    digits_.clear();
    flushed_ = length == 0;
    if (!flushed_) left_ = length - 4;
  }
  return at;
}

}  // namespace caisson::git

// What the two ends of a tunnel say to each other: frames of [u32 connection][u8 kind][u32 length]
// [data], numbers with the most significant byte first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::sdk {

struct TunnelFrame {
  enum class Kind : uint8_t {
    kReady,   // the relay listens; the first frame, and the only one of its kind
    kOpen,    // somebody inside connected; the relay gives numbers that grow
    kData,    // bytes of a connection
    kEnd,     // no more bytes this way
    kClosed,  // the connection is gone, both ways
    kCredit,  // so many bytes more may be sent; four bytes
  };

  uint32_t connection = 0;
  Kind kind = Kind::kReady;
  std::string data;

  bool operator==(const TunnelFrame&) const = default;
};

// Of the data of one frame.
inline constexpr size_t kMaxTunnelData = 64 << 10;

void AppendFrame(std::string& out, uint32_t connection, TunnelFrame::Kind kind,
                 std::string_view data = {});
void AppendCredit(std::string& out, uint32_t connection, size_t bytes);
// Of a frame that Next() gave; 0 for all but kCredit.
uint32_t CreditOf(const TunnelFrame& frame);

// Makes frames of bytes that come in any pieces.
class TunnelFrameReader {
 public:
  void Add(std::string_view bytes) { buffer_ += bytes; }
  // The next frame, nothing until all of it is there. kDataLoss: this is no frame. Never keeps more
  // than what was added since the last one that was whole.
  Result<std::optional<TunnelFrame>> Next();

 private:
  std::string buffer_;
  size_t read_ = 0;  // of the buffer
};

}  // namespace caisson::sdk

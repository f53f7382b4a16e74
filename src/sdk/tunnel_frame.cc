#include "sdk/tunnel_frame.h"

namespace caisson::sdk {
namespace {

using Kind = TunnelFrame::Kind;

constexpr size_t kHead = 9;

void AppendNumber(std::string& out, uint32_t number) {
  for (int shift : {24, 16, 8, 0}) out += static_cast<char>(number >> shift & 0xff);
}

uint32_t NumberAt(std::string_view text, size_t at) {
  uint32_t number = 0;
  for (char byte : text.substr(at, 4)) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

}  // namespace

void AppendFrame(std::string& out, uint32_t connection, Kind kind, std::string_view data) {
  AppendNumber(out, connection);
  out += static_cast<char>(kind);
  AppendNumber(out, static_cast<uint32_t>(data.size()));
  out += data;
}

void AppendCredit(std::string& out, uint32_t connection, size_t bytes) {
  std::string data;
  AppendNumber(data, static_cast<uint32_t>(bytes));
  AppendFrame(out, connection, Kind::kCredit, data);
}

uint32_t CreditOf(const TunnelFrame& frame) {
  return frame.kind == Kind::kCredit ? NumberAt(frame.data, 0) : 0;
}

// SECURITY: these are bytes of a program inside, which may be anybody's.
Result<std::optional<TunnelFrame>> TunnelFrameReader::Next() {
  std::string_view rest = std::string_view(buffer_).substr(read_);
  auto wait = [this]() -> Result<std::optional<TunnelFrame>> {
    buffer_.erase(0, std::exchange(read_, 0));
    return std::nullopt;
  };
  if (rest.size() < kHead) return wait();
  auto kind = static_cast<uint8_t>(rest[4]);
  uint32_t size = NumberAt(rest, 5);
  bool fits = false;
  switch (static_cast<Kind>(kind)) {
    case Kind::kReady:
    case Kind::kOpen:
    case Kind::kEnd:
    case Kind::kClosed:
      fits = size == 0;
      break;
    case Kind::kData:
      fits = size > 0 && size <= kMaxTunnelData;
      break;
    case Kind::kCredit:
      fits = size == 4;
      break;
  }
  if (!fits)
    return Fail(Code::kDataLoss, "a frame of kind {} with {} bytes, which there is none of", kind,
                size);
  if (rest.size() < kHead + size) return wait();
  read_ += kHead + size;
  return TunnelFrame{.connection = NumberAt(rest, 0),
                     .kind = static_cast<Kind>(kind),
                     .data = std::string(rest.substr(kHead, size))};
}

}  // namespace caisson::sdk

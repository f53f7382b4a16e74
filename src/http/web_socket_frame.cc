#include "http/web_socket_frame.h"

#include "base/text.h"

namespace caisson::http {
namespace {

using Kind = WebSocketMessage::Kind;

constexpr uint8_t kContinuation = 0x0, kText = 0x1, kBinary = 0x2, kClose = 0x8, kPing = 0x9,
                  kPong = 0xA;
constexpr uint8_t kLast = 0x80, kReserved = 0x70, kMasked = 0x80;
constexpr size_t kMaxControl = 125, kMaskBytes = 4;
constexpr uint8_t kSize16 = 126, kSize64 = 127;

bool IsControl(uint8_t opcode) { return opcode >= kClose; }

bool IsUtf8(std::string_view text) { return ToUtf8(text) == text; }

auto Wrong(std::string why) {
  return tl::unexpected(WebSocketFault{CloseCode::kProtocolError, std::move(why)});
}

Kind KindOf(uint8_t opcode) {
  switch (opcode) {
    case kText:
      return Kind::kText;
    case kBinary:
      return Kind::kBinary;
    case kPing:
      return Kind::kPing;
    case kPong:
      return Kind::kPong;
    default:
      return Kind::kClose;
  }
}

uint8_t OpcodeOf(Kind kind) {
  switch (kind) {
    case Kind::kText:
      return kText;
    case Kind::kBinary:
      return kBinary;
    case Kind::kPing:
      return kPing;
    case Kind::kPong:
      return kPong;
    case Kind::kClose:
      break;
  }
  return kClose;
}

uint64_t BigEndian(std::string_view bytes) {
  uint64_t number = 0;
  for (char c : bytes) number = number << 8 | static_cast<uint8_t>(c);
  return number;
}

// The codes that may travel: those of the protocol that are meant to, and those left to programs.
bool IsCloseCode(uint64_t code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
         (code >= 3000 && code <= 4999);
}

// What a close frame holds: nothing, or a code and a text.
std::optional<WebSocketFault> CheckClose(std::string& data) {
  if (data.empty()) return std::nullopt;
  if (data.size() < 2 || !IsCloseCode(BigEndian(std::string_view(data).substr(0, 2))))
    return WebSocketFault{CloseCode::kProtocolError, "a close frame without a code"};
  data.erase(0, 2);
  if (!IsUtf8(data)) return WebSocketFault{CloseCode::kBadText, "the reason is not UTF-8"};
  return std::nullopt;
}

}  // namespace

tl::expected<std::optional<FrameParser::Header>, WebSocketFault> FrameParser::ReadHeader() const {
  auto byte = [this](size_t i) { return static_cast<uint8_t>(buffer_[i]); };
  if (buffer_.size() < 2) return std::nullopt;
  Header header{.last = (byte(0) & kLast) != 0, .opcode = static_cast<uint8_t>(byte(0) & 0x0F)};
  if (byte(0) & kReserved) return Wrong("a reserved bit is set");
  if (header.opcode > kBinary && (header.opcode < kClose || header.opcode > kPong))
    return Wrong("an unknown kind of frame");
  // SECURITY: a mask keeps a page from choosing the bytes on the wire, which proxies may misread.
  if (!(byte(1) & kMasked)) return Wrong("a frame that is not masked");
  uint8_t size = byte(1) & 0x7F;
  size_t more = size == kSize16 ? 2 : size == kSize64 ? 8 : 0;
  header.bytes = 2 + more + kMaskBytes;
  if (IsControl(header.opcode) && (!header.last || size > kMaxControl))
    return Wrong("a control frame in pieces, or a long one");
  if (buffer_.size() < 2 + more) return std::nullopt;
  header.size = more == 0 ? size : BigEndian(std::string_view(buffer_).substr(2, more));
  bool wasteful = (more == 2 && header.size < kSize16) || (more == 8 && header.size <= UINT16_MAX);
  if (wasteful || header.size > INT64_MAX) return Wrong("a size that is not written as it must be");
  return header;
}

std::optional<WebSocketFault> FrameParser::CheckOrder(const Header& header) const {
  if (IsControl(header.opcode)) return std::nullopt;
  if ((header.opcode == kContinuation) != (kind_ != 0))
    return WebSocketFault{CloseCode::kProtocolError, "the pieces of messages are mixed up"};
  if (header.size > max_message_ - message_.size())
    return WebSocketFault{CloseCode::kTooLarge, "a message is too large"};
  return std::nullopt;
}

std::string FrameParser::TakePayload(const Header& header) {
  auto size = static_cast<size_t>(header.size);
  std::string_view mask = std::string_view(buffer_).substr(header.bytes - kMaskBytes, kMaskBytes);
  std::string payload = buffer_.substr(header.bytes, size);
  for (size_t i = 0; i < size; ++i) payload[i] = static_cast<char>(payload[i] ^ mask[i % 4]);
  buffer_.erase(0, header.bytes + size);
  return payload;
}

tl::expected<std::optional<WebSocketMessage>, WebSocketFault> FrameParser::Next() {
  for (;;) {
    auto header = ReadHeader();
    if (!header) return tl::unexpected(header.error());
    if (!*header) return std::nullopt;
    // Before its bytes are waited for: they are not worth the memory.
    if (auto fault = CheckOrder(**header)) return tl::unexpected(*fault);
    if (buffer_.size() < (*header)->bytes + (*header)->size) return std::nullopt;
    std::string payload = TakePayload(**header);
    uint8_t opcode = (*header)->opcode;
    if (IsControl(opcode)) {
      if (opcode == kClose)
        if (auto fault = CheckClose(payload)) return tl::unexpected(*fault);
      return WebSocketMessage{KindOf(opcode), std::move(payload)};
    }
    message_ += payload;
    if (opcode != kContinuation) kind_ = opcode;
    if (!(*header)->last) continue;
    WebSocketMessage message{KindOf(std::exchange(kind_, uint8_t{0})),
                             std::exchange(message_, std::string())};
    if (message.kind == Kind::kText && !IsUtf8(message.data))
      return tl::unexpected(WebSocketFault{CloseCode::kBadText, "a text is not UTF-8"});
    return message;
  }
}

std::string MakeFrame(Kind kind, std::string_view data) {
  std::string frame(1, static_cast<char>(kLast | OpcodeOf(kind)));
  size_t bytes = data.size() < kSize16 ? 0 : data.size() <= UINT16_MAX ? 2 : 8;
  frame += static_cast<char>(bytes == 0 ? data.size() : bytes == 2 ? kSize16 : kSize64);
  for (size_t i = bytes; i-- > 0;) frame += static_cast<char>(data.size() >> (8 * i));
  frame += data;
  return frame;
}

std::string MakeCloseFrame(CloseCode code, std::string_view reason) {
  auto number = static_cast<uint16_t>(code);
  std::string data{static_cast<char>(number >> 8), static_cast<char>(number)};
  data += reason.substr(0, kMaxControl - 2);
  return MakeFrame(Kind::kClose, data);
}

}  // namespace caisson::http

// The frames of WebSockets (RFC 6455) as bytes: those of clients read, those of the server made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace caisson::http {

// Reasons to close, as the protocol numbers them.
enum class CloseCode : uint16_t {
  kNormal = 1000,
  kGoingAway = 1001,
  kProtocolError = 1002,
  kBadText = 1007,  // not UTF-8
  kTooLarge = 1009,
  kFailed = 1011,  // the server's own trouble
};

struct WebSocketMessage {
  enum class Kind { kText, kBinary, kPing, kPong, kClose };
  Kind kind = Kind::kText;
  std::string data;  // of kClose: the reason
};

// What a client did wrong, and how it is told.
struct WebSocketFault {
  CloseCode code = CloseCode::kProtocolError;
  std::string why;
};

// Puts messages together from the bytes of a client. Holds one message at most, and what was fed.
class FrameParser {
 public:
  explicit FrameParser(size_t max_message) : max_message_(max_message) {}

  void Feed(std::string_view bytes) { buffer_ += bytes; }
  // The next whole message; nothing if more bytes are needed. After a fault it is of no use.
  tl::expected<std::optional<WebSocketMessage>, WebSocketFault> Next();

 private:
  struct Header {
    bool last = false;
    uint8_t opcode = 0;
    uint64_t size = 0;
    size_t bytes = 0;  // of the header itself, mask included
  };
  tl::expected<std::optional<Header>, WebSocketFault> ReadHeader() const;
  std::optional<WebSocketFault> CheckOrder(const Header& header) const;
  std::string TakePayload(const Header& header);

  const size_t max_message_;
  std::string buffer_;
  std::string message_;  // the pieces so far
  uint8_t kind_ = 0;     // opcode of the message that is under way, 0 = none
};

// One frame of the server: not masked, whole.
std::string MakeFrame(WebSocketMessage::Kind kind, std::string_view data);
std::string MakeCloseFrame(CloseCode code, std::string_view reason);

}  // namespace caisson::http

#include "http/web_socket.h"

#include <array>
#include <bit>

#include "base/encoding.h"

namespace caisson::http {
namespace {

using Kind = WebSocketMessage::Kind;

constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
constexpr size_t kChunk = 16 << 10;
constexpr size_t kKeyBytes = 16;
constexpr std::chrono::milliseconds kLinger{2'000};

// FIPS 180-4. The handshake asks for it; nothing here relies on its strength.
std::string Sha1(std::string_view text) {
  std::array<uint32_t, 5> h = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  std::string data(text);
  data += '\x80';
  while (data.size() % 64 != 56) data += '\0';
  for (int i = 7; i >= 0; --i) data += static_cast<char>(text.size() * 8 >> (8 * i));
  for (size_t at = 0; at < data.size(); at += 64) {
    std::array<uint32_t, 80> w;
    for (size_t i = 0; i < 16; ++i) {
      w[i] = 0;
      for (size_t j = 0; j < 4; ++j) w[i] = w[i] << 8 | static_cast<uint8_t>(data[at + 4 * i + j]);
    }
    for (size_t i = 16; i < 80; ++i)
      w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    auto [a, b, c, d, e] = h;
    for (size_t i = 0; i < 80; ++i) {
      uint32_t f = i < 20   ? (b & c) | (~b & d)
                   : i < 40 ? b ^ c ^ d
                   : i < 60 ? (b & c) | (b & d) | (c & d)
                            : b ^ c ^ d;
      uint32_t k = i < 20 ? 0x5A827999 : i < 40 ? 0x6ED9EBA1 : i < 60 ? 0x8F1BBCDC : 0xCA62C1D6;
      uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
      e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
    }
    h = {h[0] + a, h[1] + b, h[2] + c, h[3] + d, h[4] + e};
  }
  std::string digest;
  for (uint32_t word : h)
    for (int i = 3; i >= 0; --i) digest += static_cast<char>(word >> (8 * i));
  return digest;
}

Status CheckHandshake(const RequestHead& request) {
  if (!WantsWebSocket(request))
    return Fail(Code::kInvalidArgument, "the request does not ask for a WebSocket");
  if (request.headers.Value("Sec-WebSocket-Version") != "13")
    return Fail(Code::kInvalidArgument, "only version 13 of WebSockets is known here");
  auto key = Base64Decode(request.headers.Value("Sec-WebSocket-Key"));
  if (!key || key->size() != kKeyBytes)
    return Fail(Code::kInvalidArgument, "Sec-WebSocket-Key must be 16 bytes in base64");
  return {};
}

}  // namespace

std::string AcceptKey(std::string_view key) {
  return Base64Encode(Sha1(std::string(key) + std::string(kGuid)));
}

bool WantsWebSocket(const RequestHead& request) {
  return request.method == "GET" && request.version >= 11 &&
         request.headers.HasToken("Connection", "upgrade") &&
         request.headers.HasToken("Upgrade", "websocket");
}

Task<Result<std::unique_ptr<WebSocket>>> WebSocket::Accept(Exchange& exchange,
                                                           WebSocketOptions options) {
  const RequestHead& request = exchange.request();
  CO_TRY(CheckHandshake(request));
  std::string answer = fmt::format(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: {}\r\nX-Request-Id: {}\r\n\r\n",
      AcceptKey(request.headers.Value("Sec-WebSocket-Key")), exchange.request_id());
  std::string buffered;
  CO_TRY_ASSIGN(auto stream, exchange.Upgrade(buffered));
  CO_TRY(co_await WithDeadline(options.ping, "answering the handshake", stream->Write(answer)));
  co_return std::unique_ptr<WebSocket>(
      new WebSocket(std::move(stream), std::move(buffered), options));
}

WebSocket::WebSocket(std::unique_ptr<Stream> stream, std::string buffered, WebSocketOptions options)
    : options_(options),
      stream_(std::move(stream)),
      parser_(options.max_message),
      changed_(stream_->executor()),
      heard_(std::chrono::steady_clock::now()) {
  parser_.Feed(buffered);
}

void WebSocket::EndReading() {
  read_ended_ = true;
  changed_.Notify();
}

Task<std::optional<WebSocketMessage>> WebSocket::Read() {
  std::string chunk(kChunk, '\0');
  while (!read_ended_) {
    auto next = parser_.Next();
    if (!next) {
      Close(next.error().code, next.error().why);
      EndReading();
    } else if (!*next) {
      auto size = co_await stream_->Read(chunk);
      if (!size || *size == 0) {
        EndReading();
        break;
      }
      heard_ = std::chrono::steady_clock::now();
      parser_.Feed(std::string_view(chunk).substr(0, *size));
    } else if ((*next)->kind == Kind::kClose) {
      Close(CloseCode::kNormal, "");
      EndReading();
    } else if ((*next)->kind == Kind::kPing) {
      (void)Send(Kind::kPong, (*next)->data);
    } else if ((*next)->kind != Kind::kPong && !closing_) {
      co_return std::move(**next);
    }
  }
  co_return std::nullopt;
}

bool WebSocket::Send(Kind kind, std::string_view data) {
  if (!open() || data.size() > options_.max_waiting ||
      waiting_ > options_.max_waiting - data.size())
    return false;
  Queue(MakeFrame(kind, data));
  return true;
}

void WebSocket::Close(CloseCode code, std::string_view reason) {
  if (closing_) return;
  Queue(MakeCloseFrame(code, reason));
  closing_ = true;
}

void WebSocket::Abort() {
  closing_ = true;
  stream_->Close(/*reset=*/true);
  EndReading();
}

void WebSocket::Queue(std::string frame) {
  waiting_ += frame.size();
  queue_.push_back(std::move(frame));
  changed_.Notify();
}

Task<bool> WebSocket::WriteQueued() {
  while (!queue_.empty()) {
    std::string frame = std::move(queue_.front());
    queue_.pop_front();
    Status written =
        co_await WithDeadline(2 * options_.ping, "writing to the client", stream_->Write(frame));
    waiting_ -= frame.size();
    if (!written) co_return false;
    if (drained_) drained_();
  }
  co_return true;
}

Task<void> WebSocket::Write() {
  using Clock = std::chrono::steady_clock;
  auto next_ping = Clock::now() + options_.ping;
  for (;;) {
    if (!co_await WriteQueued()) break;
    if (closing_) {
      co_await Linger();
      break;
    }
    if (read_ended_) break;
    if (co_await changed_.Wait(next_ping)) continue;
    if (Clock::now() - heard_ > 2 * options_.ping) break;
    (void)Send(Kind::kPing, "");
    next_ping = Clock::now() + options_.ping;
  }
  // The reader ends, too.
  closing_ = true;
  stream_->Close();
  if (drained_) drained_();
}

Task<void> WebSocket::Linger() {
  co_await stream_->ShutdownWrite();
  auto until = std::chrono::steady_clock::now() + kLinger;
  while (!read_ended_ && co_await changed_.Wait(until)) {
  }
}

}  // namespace caisson::http

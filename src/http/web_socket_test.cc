// WebSockets: frames as bytes, hostile ones among them, and a conversation with a real server.
#include "http/web_socket.h"

#include <gmock/gmock.h>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "http/test_support.h"

namespace caisson::http {
namespace {

using Kind = WebSocketMessage::Kind;
using ::testing::HasSubstr;

constexpr uint8_t kText = 1, kBinary = 2, kClose = 8, kPing = 9;

// A frame as a client sends it.
std::string Masked(uint8_t opcode, std::string_view data, bool last = true) {
  constexpr std::string_view kMask = "\x12\x34\x56\x78";
  std::string frame(1, static_cast<char>((last ? 0x80 : 0) | opcode));
  if (data.size() < 126) {
    frame += static_cast<char>(0x80 | data.size());
  } else {
    frame += static_cast<char>(0x80 | 126);
    frame += static_cast<char>(data.size() >> 8);
    frame += static_cast<char>(data.size());
  }
  frame += kMask;
  for (size_t i = 0; i < data.size(); ++i) frame += static_cast<char>(data[i] ^ kMask[i % 4]);
  return frame;
}

// What comes out of these bytes: messages, and the code of a fault if there is one.
struct Parsed {
  std::vector<std::pair<Kind, std::string>> messages;
  int fault = 0;
  bool operator==(const Parsed&) const = default;
};

Parsed Parse(std::string_view bytes, size_t step, size_t max_message = 1000) {
  FrameParser parser(max_message);
  Parsed parsed;
  for (size_t at = 0; at < bytes.size() && parsed.fault == 0; at += step) {
    parser.Feed(bytes.substr(at, step));
    for (;;) {
      auto next = parser.Next();
      if (!next) parsed.fault = static_cast<int>(next.error().code);
      if (!next || !*next) break;
      parsed.messages.emplace_back((*next)->kind, (*next)->data);
    }
  }
  return parsed;
}

// The same whatever the pieces are that the bytes come in.
Parsed Parse(std::string_view bytes) {
  Parsed whole = Parse(bytes, bytes.size() + 1);
  EXPECT_EQ(Parse(bytes, 1), whole);
  EXPECT_EQ(Parse(bytes, 7), whole);
  return whole;
}

int FaultOf(std::string_view bytes) { return Parse(bytes).fault; }

TEST(FrameParser, MessagesComeWhole) {
  std::string large(900, 'x');
  Parsed parsed = Parse(Masked(kText, "grüße") + Masked(kBinary, "") + Masked(kBinary, large));
  EXPECT_EQ(parsed.fault, 0);
  ASSERT_EQ(parsed.messages.size(), 3u);
  EXPECT_EQ(parsed.messages[0], std::pair(Kind::kText, std::string("grüße")));
  EXPECT_EQ(parsed.messages[1], std::pair(Kind::kBinary, std::string()));
  EXPECT_EQ(parsed.messages[2].second, large);
}

TEST(FrameParser, PiecesMakeAMessageAndAPingMayComeBetween) {
  // The pieces cut a character in two.
  Parsed parsed = Parse(Masked(kText, "gr\xC3", false) + Masked(kPing, "now") +
                        Masked(0, "\xBC", false) + Masked(0, "n"));
  EXPECT_EQ(parsed.fault, 0);
  ASSERT_EQ(parsed.messages.size(), 2u);
  EXPECT_EQ(parsed.messages[0], std::pair(Kind::kPing, std::string("now")));
  EXPECT_EQ(parsed.messages[1], std::pair(Kind::kText, std::string("grün")));
}

TEST(FrameParser, HostileFramesAreFaults) {
  std::string unmasked = MakeFrame(Kind::kText, "hello");
  EXPECT_EQ(FaultOf(unmasked), 1002);
  for (uint8_t reserved : {0x40, 0x20, 0x10}) {
    std::string frame = Masked(kText, "x");
    frame[0] = static_cast<char>(frame[0] | reserved);
    EXPECT_EQ(FaultOf(frame), 1002);
  }
  for (uint8_t opcode : {3, 7, 0xB, 0xF}) EXPECT_EQ(FaultOf(Masked(opcode, "x")), 1002);
  EXPECT_EQ(FaultOf(Masked(0, "no beginning")), 1002);
  EXPECT_EQ(FaultOf(Masked(kText, "a", false) + Masked(kText, "b")), 1002);
  EXPECT_EQ(FaultOf(Masked(kPing, "a", false)), 1002);
  EXPECT_EQ(FaultOf(Masked(kPing, std::string(126, 'x'))), 1002);
  EXPECT_EQ(FaultOf(Masked(kText, "\xC3")), 1007);
  EXPECT_EQ(FaultOf(Masked(kText, "\xED\xA0\x80")), 1007);  // half of a surrogate pair
  EXPECT_EQ(FaultOf(Masked(kText, "\xC3", false) + Masked(0, "x")), 1007);
  // Sizes that are written longer than needed, or that no frame has.
  EXPECT_EQ(FaultOf(std::string("\x82\xFE\x00\x05", 4)), 1002);
  EXPECT_EQ(FaultOf(std::string("\x82\xFF\x00\x00\x00\x00\x00\x00\x00\x05", 10)), 1002);
  EXPECT_EQ(FaultOf(std::string("\x82\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 10)), 1002);
}

TEST(FrameParser, WhatIsTooLargeIsRefusedBeforeItComes) {
  // 4 GiB are announced: the header is enough.
  EXPECT_EQ(FaultOf(std::string("\x82\xFF\x00\x00\x00\x01\x00\x00\x00\x00", 10)), 1009);
  EXPECT_EQ(FaultOf(Masked(kBinary, std::string(1001, 'x')).substr(0, 8)), 1009);
  EXPECT_EQ(Parse(Masked(kBinary, std::string(1000, 'x'))).messages.size(), 1u);
  std::string pieces = Masked(kBinary, std::string(600, 'x'), false);
  EXPECT_EQ(FaultOf(pieces + Masked(0, std::string(401, 'x'))), 1009);
  EXPECT_EQ(FaultOf(pieces + Masked(0, std::string(400, 'x'))), 0);
}

TEST(FrameParser, TheEndIsCheckedToo) {
  EXPECT_EQ(Parse(Masked(kClose, "")).messages[0].first, Kind::kClose);
  EXPECT_EQ(Parse(Masked(kClose,
                         "\x03\xE8"
                         "bye"))
                .messages[0]
                .second,
            "bye");
  EXPECT_EQ(FaultOf(Masked(kClose, "\x03")), 1002);
  EXPECT_EQ(FaultOf(Masked(kClose, "\x03\xED")), 1002);  // 1005 is never sent
  EXPECT_EQ(FaultOf(Masked(kClose, std::string("\x00\x00", 2))), 1002);
  EXPECT_EQ(FaultOf(Masked(kClose, "\x03\xE8\xFF")), 1007);
}

TEST(WebSocket, TheHandshakeOfTheStandard) {
  EXPECT_EQ(AcceptKey("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

Task<void> Echo(WebSocket& socket) {
  while (auto message = co_await socket.Read()) {
    if (message->data == "go away")
      socket.Close(CloseCode::kGoingAway, "as you wish");
    else
      socket.Send(message->kind, message->data);
  }
}

Task<void> ServeEcho(Exchange& exchange, std::chrono::milliseconds ping) {
  using namespace asio::experimental::awaitable_operators;
  auto socket = co_await WebSocket::Accept(exchange, {.max_message = 1000, .ping = ping});
  if (!socket) {
    co_await exchange.Send(Response::Text(400, socket.error().message()));
    co_return;
  }
  co_await (Echo(**socket) && (*socket)->Write());
}

// It asks so seldom whether somebody is there that nobody here has to answer.
Task<void> ServeEcho(Exchange& exchange) { return ServeEcho(exchange, 30s); }

std::string Handshake(std::string_view more = "") {
  return fmt::format(
      "GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n{}",
      more);
}

// Everything up to the end, without the head of the answer; pings left out.
std::string FramesOf(RawClient& client) {
  std::string all = client.ReadToEnd();
  size_t end = all.find("\r\n\r\n");
  EXPECT_NE(end, std::string::npos) << all;
  std::string frames = end == std::string::npos ? all : all.substr(end + 4);
  for (size_t at; (at = frames.find(std::string("\x89\x00", 2))) != std::string::npos;)
    frames.erase(at, 2);
  return frames;
}

TEST(WebSocket, AConversation) {
  TestServer server(static_cast<Task<void> (*)(Exchange&)>(ServeEcho));
  RawClient client(server.port());
  // The first frames come with the request.
  client.Send(Handshake(Masked(kText, "hello") + Masked(kPing, "there")));
  client.Send(Masked(kBinary, std::string(300, 'x')) + Masked(kClose, "\x03\xE8"));
  EXPECT_EQ(FramesOf(client), MakeFrame(Kind::kText, "hello") + MakeFrame(Kind::kPong, "there") +
                                  MakeFrame(Kind::kBinary, std::string(300, 'x')) +
                                  MakeCloseFrame(CloseCode::kNormal, ""));
}

TEST(WebSocket, TheServerSaysWhyItCloses) {
  TestServer server(static_cast<Task<void> (*)(Exchange&)>(ServeEcho));
  for (const auto& [sent, answer] :
       {std::pair(Masked(kText, "go away"), MakeCloseFrame(CloseCode::kGoingAway, "as you wish")),
        {MakeFrame(Kind::kText, "x"),
         MakeCloseFrame(CloseCode::kProtocolError, "a frame that is not masked")},
        {Masked(kText, "\xC3"), MakeCloseFrame(CloseCode::kBadText, "a text is not UTF-8")},
        {Masked(kText, std::string(1001, 'x')),
         MakeCloseFrame(CloseCode::kTooLarge, "a message is too large")}}) {
    RawClient client(server.port());
    client.Send(Handshake(sent));
    EXPECT_THAT(FramesOf(client), ::testing::StartsWith(answer));
  }
}

TEST(WebSocket, AClientThatDoesNotAnswerPingsIsGone) {
  TestServer server([](Exchange& exchange) { return ServeEcho(exchange, 300ms); });
  RawClient client(server.port());
  client.Send(Handshake());
  std::string all = client.ReadToEnd();
  EXPECT_THAT(all, HasSubstr(std::string("\x89\x00", 2)));
  EXPECT_THAT(all, ::testing::Not(HasSubstr("TIMEOUT")));
}

TEST(WebSocket, OtherHandshakesAreRefused) {
  TestServer server(static_cast<Task<void> (*)(Exchange&)>(ServeEcho));
  auto refused = [&](std::string_view from, std::string_view to) {
    std::string request = Handshake();
    request.replace(request.find(from), from.size(), to);
    RawClient client(server.port());
    client.Send(request);
    return client.ReadAnswer().status;
  };
  EXPECT_EQ(refused("Version: 13", "Version: 8"), 400u);
  EXPECT_EQ(refused("dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ="), 400u);
  EXPECT_EQ(refused("Upgrade: websocket", "Upgrade: h2c"), 400u);
  EXPECT_EQ(refused("keep-alive, Upgrade", "keep-alive"), 400u);
}

}  // namespace
}  // namespace caisson::http

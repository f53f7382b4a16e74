// The receiving half of HTTP: however the bytes are cut into pieces, the same messages come out.
// Two readers that disagree here are what request smuggling is made of.
#pragma once

#include <vector>

#include "fuzz/support.h"
#include "http/reader.h"
#include "http/wire.h"

namespace caisson::fuzz {

inline constexpr size_t kMaxHeader = 64 << 10;
inline constexpr size_t kMaxMessages = 64;

template <class Head>
struct Received {
  Head head;
  std::string body;
};

inline std::string FieldsOf(const http::Headers& headers) {
  std::string text;
  for (const auto& [name, value] : headers) text.append(name).append("=").append(value) += '\n';
  return text;
}

// One message; an error at the end of the input or at what is no message.
template <class Head>
Task<Result<Received<Head>>> ReadMessage(http::MessageReader& reader) {
  Received<Head> message;
  if constexpr (std::is_same_v<Head, http::RequestHead>) {
    CO_TRY(co_await reader.ReadHead(message.head));
  } else {
    CO_TRY(co_await reader.ReadHead(message.head, false));
  }
  std::string buffer(1000, '\0');
  while (!reader.BodyDone()) {
    CO_TRY_ASSIGN(size_t size, co_await reader.ReadBody(buffer));
    message.body.append(buffer, 0, size);
  }
  auto length = reader.content_length();
  Check(!length || *length == message.body.size(), "a body is not as long as its length");
  co_return message;
}

template <class Head>
std::vector<Received<Head>> ReadMessages(std::string_view data, size_t piece) {
  MemoryStream stream(data, piece);
  http::MessageReader reader(stream, kMaxHeader);
  std::vector<Received<Head>> messages;
  while (messages.size() < kMaxMessages) {
    auto message = Run(ReadMessage<Head>(reader));
    if (!message) break;
    messages.push_back(std::move(*message));
  }
  return messages;
}

// Reads `data` in one piece and in many, compares, and gives the messages.
template <class Head>
std::vector<Received<Head>> ReadInEveryWay(std::string_view data, size_t piece) {
  auto whole = ReadMessages<Head>(data, data.size() + 1);
  for (size_t size : {size_t{1}, piece}) {
    auto pieces = ReadMessages<Head>(data, size);
    Check(pieces.size() == whole.size(), "pieces give another number of messages");
    for (size_t i = 0; i < whole.size(); ++i) {
      Check(FieldsOf(pieces[i].head.headers) == FieldsOf(whole[i].head.headers),
            "pieces give other headers");
      Check(pieces[i].body == whole[i].body, "pieces give another body");
    }
  }
  return whole;
}

}  // namespace caisson::fuzz

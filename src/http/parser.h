// HTTP/1 syntax: the head of a message and the chunked coding, parsed by Boost.Beast, plus the
// rules that keep two parsers from disagreeing about where a message ends (request smuggling).
// Works on bytes in memory; http/reader.h brings them from a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "http/message.h"

namespace caisson::http {

// How the end of a body is known.
enum class BodyFraming { kNone, kLength, kChunked, kUntilClose };

class MessageParser {
 public:
  // The head is written into `head`, which must live until head_done().
  MessageParser(RequestHead& head, size_t max_header_bytes);
  // `no_body`: the answer to a HEAD request.
  MessageParser(ResponseHead& head, size_t max_header_bytes, bool no_body);
  ~MessageParser();
  MessageParser(MessageParser&&) noexcept;
  MessageParser& operator=(MessageParser&&) noexcept;

  // Takes a prefix of `data` and returns its size; what it leaves must be offered again, with more
  // bytes behind it. Errors: kOutOfRange (header too large), kFailedPrecondition (HTTP version),
  // kUnimplemented (transfer coding), kInvalidArgument.
  Result<size_t> ParseHead(std::string_view data);
  bool head_done() const;

  // Valid once head_done().
  BodyFraming framing() const;
  uint64_t content_length() const;  // with kLength
  bool keep_alive() const;          // what the sender of this message wants
  unsigned version() const;         // 10 or 11

  // For kChunked: moves payload from `data` to `out`.
  struct Step {
    size_t consumed = 0;
    size_t produced = 0;
  };
  Result<Step> ParseChunks(std::string_view data, std::span<char> out);
  bool chunks_done() const;

 private:
  class Impl;
  template <bool kIsRequest>
  class Beast;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caisson::http

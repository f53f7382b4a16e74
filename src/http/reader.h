// The receiving half of a connection: brings heads and bodies of messages from a stream. Holds only
// the bytes that belong to what was not asked for yet; an idle connection holds none.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "http/parser.h"
#include "http/pipe.h"
#include "http/stream.h"

namespace caisson::http {

class MessageReader {
 public:
  MessageReader(Stream& stream, size_t max_header_bytes)
      : stream_(stream), max_header_bytes_(max_header_bytes) {}

  // True if bytes of the next message are here already.
  bool HasBuffered() const { return !buffered_.empty(); }
  // Reads what is there into the buffer without waiting: false if nothing was there, kUnavailable
  // at the end of the stream, kResourceExhausted if the buffer holds a header's worth already.
  Result<bool> Fill();

  // Reads a head. An end of the stream before its first byte is kUnavailable with errno 0; other
  // errors as MessageParser.
  Task<Status> ReadHead(RequestHead& head);
  Task<Status> ReadHead(ResponseHead& head, bool no_body);
  // Valid after a head.
  BodyFraming framing() const { return framing_; }
  std::optional<uint64_t> content_length() const;
  bool keep_alive() const { return keep_alive_; }

  // The next bytes of the body; 0 at its end. A stream that ends too early is kDataLoss.
  Task<Result<size_t>> ReadBody(std::span<char> buffer);
  // The same through a pipe, as much as it holds; only while CanSplice().
  Task<Result<size_t>> ReadBody(Pipe& pipe);
  // True if the body has a length and its next bytes are still in the kernel, as they will be sent.
  bool CanSplice() const;
  bool BodyDone() const { return body_done_; }
  // Bytes of a body with a length that are still to come, buffered ones included.
  uint64_t remaining() const { return remaining_; }

  // What was read past the message.
  std::string TakeBuffered() { return std::move(buffered_); }

 private:
  Task<Status> ParseHead();
  Task<Result<size_t>> ReadChunked(std::span<char> buffer);
  void Keep(std::string_view rest);
  // As SocketStream::ShareLoop, for reads that do not go through Stream::Read.
  Task<void> ShareLoop(size_t moved);

  Stream& stream_;
  size_t max_header_bytes_;
  std::string buffered_;
  std::optional<MessageParser> parser_;
  BodyFraming framing_ = BodyFraming::kNone;
  uint64_t length_ = 0;
  uint64_t remaining_ = 0;
  bool keep_alive_ = false;
  bool body_done_ = true;
  size_t moved_without_wait_ = 0;
};

}  // namespace caisson::http

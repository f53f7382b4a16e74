#include "http/reader.h"

#include <algorithm>
#include <cstring>

namespace caisson::http {
namespace {

// One buffer for all connections of a loop: filled by TryRead and emptied before the next co_await,
// so that a connection that waits needs none of its own.
constexpr size_t kScratchBytes = 64 << 10;
constexpr size_t kShareAfter = 1 << 20;
std::span<char> Scratch() {
  thread_local char scratch[kScratchBytes];
  return scratch;
}

}  // namespace

Result<bool> MessageReader::Fill() {
  if (buffered_.size() >= max_header_bytes_)
    return Fail(Code::kResourceExhausted, "too many bytes before the answer to the last request");
  std::span<char> scratch = Scratch().first(std::min(kScratchBytes, max_header_bytes_));
  auto n = stream_.TryRead(scratch);
  if (!n) {
    if (WouldBlock(n.error())) return false;
    return tl::unexpected(std::move(n).error());
  }
  if (*n == 0) return Fail(Code::kUnavailable, "the other side closed the connection");
  buffered_.append(scratch.data(), *n);
  return true;
}

// Parses straight from the scratch buffer in the usual case that the whole head came in one piece.
Task<Status> MessageReader::ParseHead() {
  bool any = !buffered_.empty();
  std::span<char> scratch = Scratch();
  if (any) {
    CO_TRY_ASSIGN(size_t used, parser_->ParseHead(buffered_));
    Keep(std::string_view(buffered_).substr(used));
  }
  while (!parser_->head_done()) {
    auto n = stream_.TryRead(scratch);
    if (!n) {
      if (!WouldBlock(n.error())) co_return tl::unexpected(std::move(n).error());
      CO_TRY(co_await stream_.WaitReadable());
      continue;
    }
    if (*n == 0 && !any) co_return Fail(Code::kUnavailable, "the other side closed the connection");
    if (*n == 0) co_return Fail(Code::kDataLoss, "the connection ended inside a header");
    any = true;
    std::string_view data(scratch.data(), *n);
    if (!buffered_.empty()) data = buffered_ += data;
    CO_TRY_ASSIGN(size_t used, parser_->ParseHead(data));
    Keep(data.substr(used));
  }
  framing_ = parser_->framing();
  length_ = remaining_ = framing_ == BodyFraming::kLength ? parser_->content_length() : 0;
  keep_alive_ = parser_->keep_alive();
  body_done_ = framing_ == BodyFraming::kNone;
  if (framing_ != BodyFraming::kChunked) parser_.reset();
  co_return Status();
}

Task<Status> MessageReader::ReadHead(RequestHead& head) {
  parser_.emplace(head, max_header_bytes_);
  return ParseHead();
}

Task<Status> MessageReader::ReadHead(ResponseHead& head, bool no_body) {
  parser_.emplace(head, max_header_bytes_, no_body);
  return ParseHead();
}

std::optional<uint64_t> MessageReader::content_length() const {
  switch (framing_) {
    case BodyFraming::kNone:
      return 0;
    case BodyFraming::kLength:
      return length_;
    default:
      return std::nullopt;
  }
}

Task<Result<size_t>> MessageReader::ReadBody(std::span<char> buffer) {
  if (body_done_ || buffer.empty()) co_return 0;
  if (framing_ == BodyFraming::kChunked) co_return co_await ReadChunked(buffer);
  if (framing_ == BodyFraming::kLength && buffer.size() > remaining_)
    buffer = buffer.first(remaining_);
  size_t n = std::min(buffered_.size(), buffer.size());
  if (n > 0) {
    std::memcpy(buffer.data(), buffered_.data(), n);
    Keep(std::string_view(buffered_).substr(n));
  } else {
    CO_TRY_ASSIGN(n, co_await stream_.Read(buffer));
  }
  if (framing_ == BodyFraming::kLength) {
    if (n == 0) co_return Fail(Code::kDataLoss, "the connection ended inside a body");
    remaining_ -= n;
    body_done_ = remaining_ == 0;
  } else {
    body_done_ = n == 0;
  }
  co_return n;
}

bool MessageReader::CanSplice() const {
  return framing_ == BodyFraming::kLength && !body_done_ && buffered_.empty() &&
         stream_.PlainSocket() >= 0;
}

Task<Result<size_t>> MessageReader::ReadBody(Pipe& pipe) {
  for (;;) {
    auto n = pipe.TryFill(stream_, remaining_);
    if (!n) {
      if (!WouldBlock(n.error())) co_return n;
      moved_without_wait_ = 0;
      CO_TRY(co_await stream_.WaitReadable());
      continue;
    }
    if (*n == 0) co_return Fail(Code::kDataLoss, "the connection ended inside a body");
    remaining_ -= *n;
    body_done_ = remaining_ == 0;
    co_await ShareLoop(*n);
    co_return n;
  }
}

Task<Result<size_t>> MessageReader::ReadChunked(std::span<char> buffer) {
  if (!parser_) co_return Fail(Code::kInvalidArgument, "the body is broken");
  std::string_view data = buffered_;
  for (;;) {
    if (!data.empty()) {
      auto parsed = parser_->ParseChunks(data, buffer);
      if (!parsed) parser_.reset();  // it cannot go on after an error
      CO_TRY_ASSIGN(auto step, std::move(parsed));
      Keep(data.substr(step.consumed));
      body_done_ = parser_->chunks_done();
      if (body_done_) parser_.reset();
      if (step.produced > 0 || body_done_) {
        co_await ShareLoop(step.produced);
        co_return step.produced;
      }
      if (buffered_.size() > max_header_bytes_)
        co_return Fail(Code::kInvalidArgument, "a chunk header is too large");
    }
    // No more than fits: what is left over after a step is then at most a chunk header.
    std::span<char> scratch =
        Scratch().first(std::clamp<size_t>(buffer.size(), 512, kScratchBytes));
    auto n = stream_.TryRead(scratch);
    if (n && *n == 0) co_return Fail(Code::kDataLoss, "the connection ended inside a body");
    if (n) {
      data = std::string_view(scratch.data(), *n);
      if (!buffered_.empty()) data = buffered_ += data;
    } else {
      if (!WouldBlock(n.error())) co_return tl::unexpected(std::move(n).error());
      data = {};
      moved_without_wait_ = 0;
      CO_TRY(co_await stream_.WaitReadable());
    }
  }
}

void MessageReader::Keep(std::string_view rest) {
  // A fresh string: gives the memory back, and `rest` may lie in the old one.
  buffered_ = rest.empty() ? std::string() : std::string(rest);
}

Task<void> MessageReader::ShareLoop(size_t moved) {
  moved_without_wait_ += moved;
  if (moved_without_wait_ < kShareAfter) co_return;
  moved_without_wait_ = 0;
  co_await asio::post(stream_.executor(), asio::use_awaitable);
}

}  // namespace caisson::http

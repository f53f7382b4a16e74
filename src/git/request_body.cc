#include "git/request_body.h"

namespace caisson::git {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr int kGzipOnly = 16 + MAX_WBITS;

}  // namespace

Gunzip::Gunzip() : out_(kBufferBytes, '\0') {
  if (inflateInit2(&stream_, kGzipOnly) != Z_OK) std::abort();  // only without memory
}

Gunzip::~Gunzip() { inflateEnd(&stream_); }

void Gunzip::Give(std::string_view input) {
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
  stream_.avail_in = static_cast<uInt>(input.size());
}

Result<std::string_view> Gunzip::Take() {
  if (complete_) {
    // SECURITY: a second member behind the first could be read or left out; nobody sends one.
    if (stream_.avail_in > 0) return Fail(Code::kInvalidArgument, "There is more behind the body.");
    return std::string_view();
  }
  stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
  stream_.avail_out = static_cast<uInt>(out_.size());
  int code = inflate(&stream_, Z_NO_FLUSH);
  if (code == Z_STREAM_END)
    complete_ = true;
  else if (code != Z_OK && code != Z_BUF_ERROR)
    return Fail(Code::kInvalidArgument, "The body is not gzip as it says.");
  size_t made = out_.size() - stream_.avail_out;
  if (made == 0 && complete_) return Take();
  return std::string_view(out_).substr(0, made);
}

RequestBody::RequestBody(http::Exchange& exchange, bool unpack)
    : exchange_(exchange), ended_(!exchange.HasBody()) {
  if (unpack) gunzip_ = std::make_unique<Gunzip>();
}

Task<Result<std::string_view>> RequestBody::Read() {
  buffer_.resize(kBufferBytes);
  CO_TRY_ASSIGN(size_t n, co_await exchange_.Read(buffer_));
  co_return std::string_view(buffer_).substr(0, n);
}

Task<Result<std::string_view>> RequestBody::Next() {
  while (!ended_) {
    if (gunzip_) {
      CO_TRY_ASSIGN(std::string_view made, gunzip_->Take());
      if (!made.empty()) co_return made;
    }
    CO_TRY_ASSIGN(std::string_view piece, co_await Read());
    if (piece.empty()) {
      if (gunzip_ && !gunzip_->complete())
        co_return Fail(Code::kInvalidArgument, "The body ends in the middle.");
      ended_ = true;
      break;
    }
    if (!gunzip_) co_return piece;
    gunzip_->Give(piece);
  }
  co_return std::string_view();
}

Task<Status> RequestBody::ReadAhead(size_t size) {
  while (!ended_ && kept_.size() < size) {
    CO_TRY_ASSIGN(std::string_view piece, co_await Next());
    kept_ += piece;
  }
  co_return Status();
}

std::optional<uint64_t> RequestBody::Length() const {
  if (ended_) return kept_.size();
  return gunzip_ ? std::nullopt : exchange_.ContentLength();
}

}  // namespace caisson::git

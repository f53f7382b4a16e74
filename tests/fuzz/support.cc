#include "fuzz/support.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace caisson::fuzz {

void Check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "CHECK FAILED: %s\n", what);
  std::abort();
}

asio::io_context& Loop() {
  static asio::io_context loop(1);
  return loop;
}

Result<size_t> MemoryStream::TryRead(std::span<char> buffer) {
  size_t size = std::min({buffer.size(), data_.size(), piece_});
  std::memcpy(buffer.data(), data_.data(), size);
  data_.remove_prefix(size);
  return size;
}

Task<Status> MemoryStream::Write(std::string_view first, std::string_view second,
                                 std::string_view third) {
  written.append(first).append(second).append(third);
  co_return Status();
}

MemoryExchange::MemoryExchange(http::RequestHead head, std::string_view body, size_t piece)
    : body_(body), piece_(piece) {
  head_ = std::move(head);
  request_id_ = "fuzz";
}

Task<Result<size_t>> MemoryExchange::Read(std::span<char> buffer) {
  size_t size = std::min({buffer.size(), body_.size(), piece_});
  std::memcpy(buffer.data(), body_.data(), size);
  body_.remove_prefix(size);
  co_return size;
}

Task<Status> MemoryExchange::Send(http::Response response) {
  ++answers;
  answer = std::move(response.body);
  co_return Status();
}

Task<Status> MemoryExchange::StartStream(http::ResponseHead, std::optional<uint64_t>,
                                         std::string_view first) {
  ++answers;
  answer = first;
  co_return Status();
}

Task<Status> MemoryExchange::Write(std::string_view data) {
  answer += data;
  co_return Status();
}

Task<Status> MemoryExchange::FinishStream(std::string_view last) {
  answer += last;
  co_return Status();
}

Result<std::unique_ptr<http::Stream>> MemoryExchange::Upgrade(std::string&) {
  return Fail(Code::kUnimplemented, "there is no connection");
}

Task<Result<std::string_view>> MemorySource::Next() {
  std::string_view next = data_.substr(0, piece_);
  data_.remove_prefix(next.size());
  co_return next;
}

Task<Result<std::string>> ReadAll(envd::ChunkSource& source, size_t max) {
  std::string all;
  for (;;) {
    CO_TRY_ASSIGN(std::string_view next, co_await source.Next());
    if (next.empty() || all.size() + next.size() > max) co_return all;
    all += next;
  }
}

}  // namespace caisson::fuzz

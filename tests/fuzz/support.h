// What the fuzzers share: a loop, streams and requests in memory, and a check that holds in every
// build type.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/async.h"
#include "envd/content_encoding.h"
#include "http/server.h"
#include "http/stream.h"

namespace caisson::fuzz {

// Ends the program with a message if `holds` is false: libFuzzer keeps the input.
void Check(bool holds, const char* what);

asio::io_context& Loop();

// Runs a task to its end. Nothing here waits for the outside, so a task that cannot go on is a
// finding.
template <class T>
T Run(Task<T> task) {
  std::optional<T> result;
  asio::co_spawn(Loop(), std::move(task), [&](std::exception_ptr thrown, T value) {
    Check(!thrown, "a coroutine threw");
    result.emplace(std::move(value));
  });
  Loop().restart();
  while (!result && Loop().run_one() > 0) {
  }
  Check(result.has_value(), "a coroutine never ended");
  return std::move(*result);
}

// Bytes that come in pieces of `piece` bytes and then end. What is written is kept.
class MemoryStream : public http::Stream {
 public:
  MemoryStream(std::string_view data, size_t piece) : data_(data), piece_(piece) {}

  Task<Result<size_t>> Read(std::span<char> buffer) override { co_return TryRead(buffer); }
  Result<size_t> TryRead(std::span<char> buffer) override;
  Task<Status> Write(std::string_view first, std::string_view second,
                     std::string_view third) override;
  Task<Status> SendFile(int, uint64_t, uint64_t) override { co_return Status(); }
  Task<Status> WaitReadable() override { co_return Status(); }
  Task<Status> WaitWritable() override { co_return Status(); }
  Task<Status> WaitBroken() override { co_return Status(); }
  Task<void> ShutdownWrite() override { co_return; }
  void Cancel() override {}
  void Close(bool reset) override { was_reset = reset; }
  int PlainSocket() const override { return -1; }
  std::string PeerAddress() const override { return "127.0.0.1"; }
  asio::any_io_executor executor() override { return Loop().get_executor(); }

  static inline std::string written;  // of the newest stream
  static inline bool was_reset;

 private:
  std::string_view data_;
  size_t piece_;
};

// A request without a connection, and the answer it got.
class MemoryExchange : public http::Exchange {
 public:
  MemoryExchange(http::RequestHead head, std::string_view body, size_t piece);

  std::string PeerAddress() const override { return "127.0.0.1"; }
  bool IsTls() const override { return false; }
  asio::any_io_executor executor() const override { return Loop().get_executor(); }
  std::optional<uint64_t> ContentLength() const override { return std::nullopt; }
  bool HasBody() const override { return !body_.empty(); }
  Task<Result<size_t>> Read(std::span<char> buffer) override;
  Task<Status> Send(http::Response response) override;
  Task<Status> StartStream(http::ResponseHead head, std::optional<uint64_t> length,
                           std::string_view first) override;
  Task<Status> Write(std::string_view data) override;
  Task<Status> FinishStream(std::string_view last) override;
  Task<Status> SendFile(int, uint64_t, uint64_t) override { co_return Status(); }
  void Abort() override {}
  Task<void> ClientGone() override { co_return; }
  Result<std::unique_ptr<http::Stream>> Upgrade(std::string&) override;
  bool answered() const override { return answers > 0; }

  int answers = 0;  // must be 1 in the end
  std::string answer;

 private:
  std::string_view body_;
  size_t piece_;
};

// The same for the parsers of envd that take pieces.
class MemorySource : public envd::ChunkSource {
 public:
  MemorySource(std::string_view data, size_t piece) : data_(data), piece_(piece) {}
  Task<Result<std::string_view>> Next() override;

 private:
  std::string_view data_;
  size_t piece_;
};

// Reads a source to its end. Output beyond `max` is not wanted.
Task<Result<std::string>> ReadAll(envd::ChunkSource& source, size_t max);

}  // namespace caisson::fuzz

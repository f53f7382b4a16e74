// For tests: a request without a network, and the answer it got.
#pragma once

#include <boost/json.hpp>
#include <cstring>

#include "http/server.h"

namespace caisson::e2b {

class FakeExchange : public http::Exchange {
 public:
  FakeExchange(asio::any_io_executor executor, std::string method, std::string target,
               std::string body, http::Headers headers)
      : executor_(std::move(executor)), body_(std::move(body)) {
    head_.method = std::move(method);
    head_.target = std::move(target);
    head_.headers = std::move(headers);
    request_id_ = "test";
  }

  std::string PeerAddress() const override { return "127.0.0.1"; }
  bool IsTls() const override { return false; }
  asio::any_io_executor executor() const override { return executor_; }
  std::optional<uint64_t> ContentLength() const override { return body_.size(); }
  bool HasBody() const override { return !body_.empty(); }
  Task<Result<size_t>> Read(std::span<char> buffer) override {
    size_t size = std::min(buffer.size(), body_.size() - read_);
    std::memcpy(buffer.data(), body_.data() + read_, size);
    read_ += size;
    co_return size;
  }

  Task<Status> Send(http::Response response) override {
    answer = std::move(response);
    co_return Status();
  }
  bool answered() const override { return answer.has_value(); }

  // The control plane streams nothing.
  Task<Status> StartStream(http::ResponseHead, std::optional<uint64_t>, std::string_view) override {
    return Unsupported();
  }
  Task<Status> Write(std::string_view) override { return Unsupported(); }
  Task<Status> FinishStream(std::string_view) override { return Unsupported(); }
  Task<Status> SendFile(int, uint64_t, uint64_t) override { return Unsupported(); }
  void Abort() override {}
  Task<void> ClientGone() override { co_await SleepFor(std::chrono::hours(1)); }
  Result<std::unique_ptr<http::Stream>> Upgrade(std::string&) override {
    return Fail(Code::kUnimplemented, "not in this test");
  }

  std::optional<http::Response> answer;

 private:
  static Task<Status> Unsupported() { co_return Fail(Code::kUnimplemented, "not in this test"); }

  asio::any_io_executor executor_;
  std::string body_;
  size_t read_ = 0;
};

}  // namespace caisson::e2b

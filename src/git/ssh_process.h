// One run of the ssh program, outside of every sandbox.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"

namespace caisson::git {

class SshProcess {
 public:
  // `environment` ("NAME=VALUE") is all that the program gets. An operation in which nothing moves,
  // neither in nor out, for `stall_timeout` fails with kDeadlineExceeded.
  static Result<std::unique_ptr<SshProcess>> Start(asio::any_io_executor executor,
                                                   std::vector<std::string> argv,
                                                   std::vector<std::string> environment,
                                                   std::chrono::milliseconds stall_timeout);
  // Ends it if it still runs.
  ~SshProcess();
  SshProcess(const SshProcess&) = delete;
  SshProcess& operator=(const SshProcess&) = delete;

  // The next piece of its output, valid until the next call; "" at the end.
  Task<Result<std::string_view>> Read();
  Task<Status> Write(std::string_view data);
  void CloseInput();
  // Its exit status, 128 + N if signal N ended it.
  Task<Result<int>> Wait();
  // The end of what it said on standard error; complete once Wait() has returned.
  const std::string& errors() const;

 private:
  struct Errors;
  explicit SshProcess(asio::any_io_executor executor);
  Status Spawn(std::vector<std::string> argv, std::vector<std::string> environment);
  static Task<void> Collect(std::shared_ptr<Errors> errors);
  Task<Result<size_t>> ReadSome();
  Task<Status> WriteAll(std::string_view data);

  asio::any_io_executor executor_;
  std::chrono::milliseconds stall_timeout_{0};
  std::chrono::steady_clock::time_point moved_ = std::chrono::steady_clock::now();
  asio::local::stream_protocol::socket input_;
  asio::posix::stream_descriptor output_;
  asio::posix::stream_descriptor pidfd_;
  std::shared_ptr<Errors> errors_;
  std::string buffer_;
  bool reaped_ = false;
};

}  // namespace caisson::git

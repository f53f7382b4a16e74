// For tests: a server on its own loop thread, and a client that sees raw bytes.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "http/server.h"

namespace caisson::http {

using namespace std::chrono_literals;

// What a raw client read of one answer.
struct RawAnswer {
  unsigned status = 0;
  std::string head;  // with its lines, without the empty one
  std::string body;  // de-chunked
  bool complete = false;

  // The value of a header line; "" if there is none.
  std::string Header(const std::string& name) const;
};

// A blocking socket. Every wait ends after 30 s, which fails what the test expects.
class RawClient {
 public:
  explicit RawClient(uint16_t port);

  void Send(std::string_view bytes);
  RawAnswer ReadAnswer(bool head_request = false);
  // Reads until the end; "RST" is appended when the end was a reset, "TIMEOUT" when none came.
  std::string ReadToEnd();
  // At least one byte, as it comes.
  std::string ReadSome();
  void CloseWrite();
  void Reset();  // RST
  int fd() const { return fd_.get(); }

 private:
  bool Fill();
  UniqueFd fd_;
  std::string buffer_;
  int error_ = 0;
};

// A loop thread. Coroutines run on it while the test waits.
class TestLoop {
 public:
  TestLoop();
  ~TestLoop();
  asio::any_io_executor executor() { return io_.get_executor(); }
  // Runs `task` to its end; rethrows. Fails the test after two minutes.
  void Run(Task<void> task);
  // Runs a plain function on the loop.
  template <class Fn>
  auto Call(Fn fn) {
    std::packaged_task<decltype(fn())()> job(std::move(fn));
    auto done = job.get_future();
    asio::post(io_, [&job] { job(); });
    return done.get();
  }

 private:
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::thread thread_;
};

class TestServer {
 public:
  explicit TestServer(Handler handler, ServerOptions options = {}, StreamFactory factory = {});
  ~TestServer();
  uint16_t port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  TestLoop& loop() { return loop_; }
  Server& server() { return *server_; }
  size_t connections() {
    return loop_.Call([this] { return server_->connections(); });
  }
  // Waits up to 30 s for this number of connections.
  bool WaitForConnections(size_t count);
  void Stop(std::chrono::milliseconds grace);

 private:
  TestLoop loop_;
  std::unique_ptr<Server> server_;
  uint16_t port_ = 0;
};

// Answers "METHOD TARGET BODY".
Task<void> EchoHandler(Exchange& exchange);

}  // namespace caisson::http

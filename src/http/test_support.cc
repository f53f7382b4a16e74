#include "http/test_support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "base/text.h"

namespace caisson::http {

std::string RawAnswer::Header(const std::string& name) const {
  for (std::string_view line : Split(head, '\n')) {
    size_t colon = line.find(':');
    if (colon != std::string_view::npos && EqualsIgnoreCase(line.substr(0, colon), name))
      return std::string(Trim(line.substr(colon + 1)));
  }
  return "";
}

RawClient::RawClient(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  timeval limit{30, 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

void RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;  // the server's answer tells what happened
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

bool RawClient::Fill() {
  char piece[16 << 10];
  ssize_t n = recv(fd_.get(), piece, sizeof(piece), 0);
  error_ = n < 0 ? errno : 0;
  if (n > 0) buffer_.append(piece, static_cast<size_t>(n));
  return n > 0;
}

RawAnswer RawClient::ReadAnswer(bool head_request) {
  RawAnswer answer;
  size_t end;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos)
    if (!Fill()) return answer;
  answer.head = buffer_.substr(0, end + 2);
  buffer_.erase(0, end + 4);
  answer.status = ParseInt<unsigned>(answer.head.substr(9, 3)).value_or(0);
  auto take = [this](size_t n) -> std::optional<std::string> {
    while (buffer_.size() < n)
      if (!Fill()) return std::nullopt;
    std::string out = buffer_.substr(0, n);
    buffer_.erase(0, n);
    return out;
  };
  bool no_body =
      head_request || answer.status == 204 || answer.status == 304 || answer.status < 200;
  if (no_body) {
    answer.complete = true;
  } else if (auto length = ParseInt<size_t>(answer.Header("Content-Length"))) {
    auto body = take(*length);
    answer.complete = body.has_value();
    answer.body = body.value_or("");
  } else if (answer.Header("Transfer-Encoding") == "chunked") {
    for (;;) {
      size_t eol;
      while ((eol = buffer_.find("\r\n")) == std::string::npos)
        if (!Fill()) return answer;
      size_t size = std::stoul(buffer_.substr(0, eol), nullptr, 16);
      buffer_.erase(0, eol + 2);
      auto piece = take(size + 2);
      if (!piece) return answer;
      answer.body += piece->substr(0, size);
      if (size == 0) break;
    }
    answer.complete = true;
  } else {
    while (Fill()) {
    }
    answer.body = std::exchange(buffer_, "");
    answer.complete = true;
  }
  return answer;
}

std::string RawClient::ReadToEnd() {
  while (Fill()) {
  }
  if (error_ == ECONNRESET) buffer_ += "RST";
  if (error_ == EAGAIN) buffer_ += "TIMEOUT";
  return std::exchange(buffer_, "");
}

std::string RawClient::ReadSome() {
  if (buffer_.empty()) Fill();
  return std::exchange(buffer_, "");
}

void RawClient::CloseWrite() { shutdown(fd_.get(), SHUT_WR); }

void RawClient::Reset() {
  linger now{1, 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  fd_.Reset();
}

TestLoop::TestLoop() : thread_([this] { io_.run(); }) {}

TestLoop::~TestLoop() {
  work_.reset();
  io_.stop();
  thread_.join();
}

void TestLoop::Run(Task<void> task) {
  auto done = asio::co_spawn(io_, std::move(task), asio::use_future);
  ASSERT_EQ(done.wait_for(120s), std::future_status::ready) << "the coroutine did not end";
  done.get();
}

TestServer::TestServer(Handler handler, ServerOptions options, StreamFactory factory) {
  loop_.Call([&] {
    server_ =
        std::make_unique<Server>(loop_.executor(), options, std::move(handler), std::move(factory));
    Status listening = server_->Listen("127.0.0.1:0");
    EXPECT_TRUE(listening) << listening.error().message();
    port_ = server_->port();
    return 0;
  });
}

TestServer::~TestServer() {
  Stop(0ms);
  loop_.Call([this] {
    server_.reset();
    return 0;
  });
}

bool TestServer::WaitForConnections(size_t count) {
  for (int i = 0; i < 3000; ++i) {
    if (connections() == count) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

void TestServer::Stop(std::chrono::milliseconds grace) { loop_.Run(server_->Stop(grace)); }

Task<void> EchoHandler(Exchange& exchange) {
  auto body = co_await exchange.ReadAll(1 << 20);
  if (!body) co_return;
  const RequestHead& request = exchange.request();
  (void)co_await exchange.Send(
      Response::Text(200, fmt::format("{} {} {}", request.method, request.target, *body)));
}

}  // namespace caisson::http

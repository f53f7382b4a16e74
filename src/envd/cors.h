// Pages in a browser may talk to envd, whatever their origin: the token protects it, not the
// origin.
#pragma once

#include "http/server.h"

namespace caisson::envd {

// True if the browser only asks whether it may send a request.
bool IsPreflight(const http::RequestHead& request);
// Yes, with every header and method it asked for.
http::Response PreflightAnswer(const http::RequestHead& request);

// An exchange whose answer a page of another origin may read. Everything else is the inner one's.
class CorsExchange : public http::Exchange {
 public:
  explicit CorsExchange(http::Exchange& inner);

  std::string PeerAddress() const override { return inner_.PeerAddress(); }
  bool IsTls() const override { return inner_.IsTls(); }
  asio::any_io_executor executor() const override { return inner_.executor(); }
  std::optional<uint64_t> ContentLength() const override { return inner_.ContentLength(); }
  bool HasBody() const override { return inner_.HasBody(); }
  Task<Result<size_t>> Read(std::span<char> buffer) override { return inner_.Read(buffer); }
  Task<Status> Send(http::Response response) override;
  Task<Status> StartStream(http::ResponseHead head, std::optional<uint64_t> content_length,
                           std::string_view first) override;
  Task<Status> Write(std::string_view data) override { return inner_.Write(data); }
  Task<Status> FinishStream(std::string_view last) override { return inner_.FinishStream(last); }
  Task<Status> SendFile(int fd, uint64_t offset, uint64_t size) override {
    return inner_.SendFile(fd, offset, size);
  }
  void Abort() override { inner_.Abort(); }
  Task<void> ClientGone() override { return inner_.ClientGone(); }
  Result<std::unique_ptr<http::Stream>> Upgrade(std::string& buffered) override {
    return inner_.Upgrade(buffered);
  }
  bool answered() const override { return inner_.answered(); }

 private:
  http::Exchange& inner_;
};

}  // namespace caisson::envd

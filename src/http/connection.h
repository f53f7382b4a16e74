// One connection of the server: reads requests one after the other, is the Exchange of each.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "http/reader.h"
#include "http/server.h"
#include "http/watchdog.h"

namespace caisson::http {

class Connection final : public Exchange {
 public:
  // `options`, `handler` and `stopping` must outlive it.
  Connection(std::unique_ptr<Stream> stream, const ServerOptions& options, const Handler& handler,
             const bool& stopping);
  ~Connection() override;

  // Serves until the connection ends.
  Task<void> Run();
  // Ends the connection if no request is being served.
  void CloseIfIdle();

  std::string PeerAddress() const override;
  bool IsTls() const override { return tls_; }
  asio::any_io_executor executor() const override { return executor_; }
  std::optional<uint64_t> ContentLength() const override;
  bool HasBody() const override { return reader_.framing() != BodyFraming::kNone; }
  Task<Result<size_t>> Read(std::span<char> buffer) override;
  Task<Result<size_t>> ReadPipe(Pipe& pipe) override;
  bool CanReadPipe() const override { return stream_ && reader_.CanSplice(); }
  Task<Status> Send(Response response) override;
  Task<Status> StartStream(ResponseHead head, std::optional<uint64_t> content_length,
                           std::string_view first) override;
  Task<Status> Write(std::string_view data) override;
  Task<Status> WritePipe(Pipe& pipe, size_t size) override;
  bool CanWritePipe() const override { return answer_ == Answer::kLength && !tls_; }
  Task<Status> FinishStream(std::string_view last) override;
  Task<Status> SendFile(int fd, uint64_t offset, uint64_t size) override;
  void Abort() override;
  Task<void> ClientGone() override;
  Result<std::unique_ptr<Stream>> Upgrade(std::string& buffered) override;
  bool answered() const override { return answer_ != Answer::kNone; }

 private:
  // How far the answer is. kBroken: bytes are missing and can no longer be sent.
  enum class Answer { kNone, kNoBody, kLength, kChunked, kUntilClose, kDone, kBroken };

  Task<bool> WaitForRequest();
  Task<bool> ReadRequest();
  Task<void> Refuse(unsigned status, std::string why);
  // Runs the handler; true if it was canceled from outside.
  Task<bool> CallHandler();
  // Brings the answer to its end; false if the connection cannot go on.
  Task<bool> Complete();
  Task<bool> DrainBody();
  Task<void> Linger();
  void BeginRequest();
  std::string BuildHead(const ResponseHead& head, std::optional<uint64_t> content_length);
  bool AnswerHasNoBody(unsigned status) const;
  // Writes with the stall limit; on failure the answer is broken.
  Task<Status> WriteOut(std::string_view first, std::string_view second = {},
                        std::string_view third = {});
  // Tells a client that waits for it to send its body.
  Task<Status> InviteBody();
  // What a failed read of the body means for the connection.
  template <class T>
  Result<T> CheckRead(Result<T> read);
  // Counts `size` body bytes of a stream; fails if the stream cannot take them.
  Status Account(uint64_t size);

  std::unique_ptr<Stream> stream_;
  asio::any_io_executor executor_;
  const ServerOptions& options_;
  const Handler& handler_;
  const bool& stopping_;
  const bool tls_;
  MessageReader reader_;
  Watchdog watchdog_;
  Answer answer_ = Answer::kNone;
  uint64_t answer_left_ = 0;  // with kLength
  bool first_request_ = true;
  bool idle_ = false;
  bool keep_alive_ = false;
  bool expects_continue_ = false;
};

}  // namespace caisson::http

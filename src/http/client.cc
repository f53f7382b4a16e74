#include "http/client.h"

#include <poll.h>

#include "base/text.h"
#include "http/reader.h"
#include "http/watchdog.h"
#include "http/wire.h"

namespace caisson::http {

class ClientConnection::Impl {
 public:
  Impl(std::unique_ptr<Stream> connected, ClientOptions client_options)
      : stream(std::move(connected)),
        options(client_options),
        reader(*stream, options.max_header_bytes),
        watchdog(*stream) {}

  // How far the request is. kBroken: bytes are missing and can no longer be sent.
  enum class Sending { kNothing, kLength, kChunked, kDone, kBroken };

  Task<Status> WriteOut(std::string_view first, std::string_view second = {},
                        std::string_view third = {}) {
    // Broken until it is proven whole: this coroutine may be canceled while it waits.
    Sending before = std::exchange(sending, Sending::kBroken);
    auto scope = watchdog.Stall(options.stall_timeout);
    Status written = co_await stream->Write(first, second, third);
    if (written) sending = before;
    co_return Explain(std::move(written));
  }

  // Replaces "canceled" by the reason when it was our own deadline.
  template <class T>
  Result<T> Explain(Result<T> result) const {
    if (result || !watchdog.expired()) return result;
    return Fail(Code::kDeadlineExceeded, "nothing moved on the connection for {} ms",
                options.stall_timeout.count());
  }

  // A byte or an end nobody asked for: the server is closing, or confused.
  bool Quiet() const {
    pollfd look{stream->PlainSocket(), POLLIN, 0};
    return look.fd < 0 || poll(&look, 1, 0) == 0;
  }

  std::unique_ptr<Stream> stream;
  ClientOptions options;
  MessageReader reader;
  Watchdog watchdog;
  Sending sending = Sending::kNothing;
  uint64_t left = 0;  // of a request body with a length
  bool head_request = false;
  bool wants_close = false;
  bool got_head = false;
  unsigned status = 0;
};

ClientConnection::ClientConnection(std::unique_ptr<Stream> stream, ClientOptions options)
    : impl_(std::make_unique<Impl>(std::move(stream), options)) {}
ClientConnection::~ClientConnection() = default;

Task<Status> ClientConnection::SendHead(RequestHead head, std::optional<uint64_t> content_length,
                                        std::string_view first) {
  Impl& c = *impl_;
  if (!c.stream || (c.sending != Impl::Sending::kNothing && !Reusable()))
    co_return Fail(Code::kFailedPrecondition, "the connection cannot take another request");
  if (content_length && first.size() > *content_length)
    co_return Fail(Code::kInvalidArgument, "the body is longer than its Content-Length");
  std::string text;
  text.reserve(512);
  CO_TRY(AppendRequestLine(text, head));
  for (const auto& [name, value] : head.headers)
    if (!IsFramingHeader(name)) AppendField(text, name, value);
  if (!head.headers.Has("Host")) AppendField(text, "Host", "localhost");
  bool usually_has_body = head.method == "POST" || head.method == "PUT" || head.method == "PATCH";
  if (!content_length)
    AppendField(text, "Transfer-Encoding", "chunked");
  else if (*content_length > 0 || usually_has_body)
    AppendField(text, "Content-Length", std::to_string(*content_length));
  text += "\r\n";

  c.head_request = head.method == "HEAD";
  c.wants_close = head.version == 10 || head.headers.HasToken("Connection", "close");
  c.got_head = false;
  if (content_length) {
    c.left = *content_length - first.size();
    c.sending = c.left > 0 ? Impl::Sending::kLength : Impl::Sending::kDone;
    co_return co_await c.WriteOut(text, first);
  }
  c.sending = Impl::Sending::kChunked;
  if (first.empty()) co_return co_await c.WriteOut(text);
  AppendChunkSize(text, first.size());
  co_return co_await c.WriteOut(text, first, kChunkEnd);
}

Task<Status> ClientConnection::WriteBody(std::string_view data) {
  Impl& c = *impl_;
  if (data.empty()) co_return Status();
  if (c.sending == Impl::Sending::kChunked) {
    std::string size;
    AppendChunkSize(size, data.size());
    co_return co_await c.WriteOut(size, data, kChunkEnd);
  }
  if (c.sending != Impl::Sending::kLength || data.size() > c.left)
    co_return Fail(Code::kFailedPrecondition, "the request takes no more body bytes");
  c.left -= data.size();
  if (c.left == 0) c.sending = Impl::Sending::kDone;
  co_return co_await c.WriteOut(data);
}

bool ClientConnection::CanWritePipe() const {
  const Impl& c = *impl_;
  return c.sending == Impl::Sending::kLength && c.stream && c.stream->PlainSocket() >= 0;
}

Task<Status> ClientConnection::WritePipe(Pipe& pipe, size_t size) {
  Impl& c = *impl_;
  if (!CanWritePipe() || size > c.left)
    co_return Fail(Code::kFailedPrecondition, "the request takes no more body bytes");
  c.sending = Impl::Sending::kBroken;
  auto scope = c.watchdog.Stall(c.options.stall_timeout);
  Status written = co_await pipe.Drain(*c.stream, size);
  if (written) {
    c.left -= size;
    c.sending = c.left > 0 ? Impl::Sending::kLength : Impl::Sending::kDone;
  }
  co_return c.Explain(std::move(written));
}

Task<Status> ClientConnection::FinishBody() {
  Impl& c = *impl_;
  switch (c.sending) {
    case Impl::Sending::kDone:
      co_return Status();
    case Impl::Sending::kChunked:
      c.sending = Impl::Sending::kDone;
      co_return co_await c.WriteOut(kLastChunk);
    default:
      co_return Fail(Code::kFailedPrecondition, "the body of the request is not complete");
  }
}

Task<Result<ResponseHead>> ClientConnection::ReadHead() {
  Impl& c = *impl_;
  constexpr int kMaxInterim = 16;
  for (int i = 0; i < kMaxInterim; ++i) {
    ResponseHead head;
    auto scope = c.watchdog.Stall(c.options.stall_timeout);
    CO_TRY(c.Explain(co_await c.reader.ReadHead(head, c.head_request)));
    if (head.status < 200 && head.status != 101) continue;
    c.status = head.status;
    c.got_head = true;
    co_return head;
  }
  co_return Fail(Code::kUnavailable, "the server sent too many interim answers");
}

std::optional<uint64_t> ClientConnection::ContentLength() const {
  return impl_->reader.content_length();
}

Task<Result<size_t>> ClientConnection::ReadBody(std::span<char> buffer) {
  auto scope = impl_->watchdog.Stall(impl_->options.stall_timeout);
  co_return impl_->Explain(co_await impl_->reader.ReadBody(buffer));
}

bool ClientConnection::CanReadPipe() const { return impl_->stream && impl_->reader.CanSplice(); }

Task<Result<size_t>> ClientConnection::ReadPipe(Pipe& pipe) {
  if (!CanReadPipe()) co_return Fail(Code::kFailedPrecondition, "the body must be read");
  auto scope = impl_->watchdog.Stall(impl_->options.stall_timeout);
  co_return impl_->Explain(co_await impl_->reader.ReadBody(pipe));
}

Task<Result<Response>> ClientConnection::Fetch(RequestHead head, std::string body,
                                               size_t max_bytes) {
  constexpr size_t kStep = 16 << 10;
  Status sent = co_await SendHead(std::move(head), body.size(), body);
  bool refused_here = !sent && (sent.error().code() == Code::kFailedPrecondition ||
                                sent.error().code() == Code::kInvalidArgument);
  if (refused_here) co_return tl::unexpected(std::move(sent).error());
  // A server that refuses a large body may close before it has all of it; its answer counts.
  auto answer = co_await ReadHead();
  if (!answer) co_return tl::unexpected(sent ? std::move(answer).error() : std::move(sent).error());
  Response response;
  static_cast<ResponseHead&>(response) = std::move(*answer);
  for (size_t filled = 0;;) {
    response.body.resize(filled + kStep);
    CO_TRY_ASSIGN(size_t n, co_await ReadBody(std::span(response.body).subspan(filled)));
    filled += n;
    response.body.resize(filled);
    if (n == 0) co_return response;
    if (filled > max_bytes)
      co_return Fail(Code::kOutOfRange, "the answer is larger than {} bytes", max_bytes);
  }
}

bool ClientConnection::Reusable() const {
  const Impl& c = *impl_;
  return c.stream && c.sending == Impl::Sending::kDone && c.got_head && c.status != 101 &&
         !c.wants_close && c.reader.BodyDone() && c.reader.keep_alive() &&
         c.reader.framing() != BodyFraming::kUntilClose && !c.reader.HasBuffered() && c.Quiet();
}

std::unique_ptr<Stream> ClientConnection::TakeStream(std::string& buffered) {
  buffered = impl_->reader.TakeBuffered();
  return std::move(impl_->stream);
}

Stream& ClientConnection::stream() { return *impl_->stream; }

void ClientConnection::Close() {
  if (impl_->stream) impl_->stream->Close();
}

}  // namespace caisson::http

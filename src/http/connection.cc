#include "http/connection.h"

#include <algorithm>
#include <boost/system/system_error.hpp>

#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "http/wire.h"

namespace caisson::http {
namespace {

// An unread request body up to this size is read and dropped to keep the connection.
constexpr size_t kMaxDrainBytes = 64 << 10;

// Unique in this process, hard to guess the next of; cheaper than asking the kernel each time.
thread_local std::optional<uint64_t> id_state;

std::string NewRequestId() {
  if (!id_state) FillRandom(&id_state.emplace(), sizeof(uint64_t));
  uint64_t z = *id_state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return fmt::format("{:016x}", z ^ (z >> 31));
}

// SECURITY: ids of clients reach logs and other services; only harmless characters pass.
bool IsSaneRequestId(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
}

// "GET http://host/path" is what proxies get; the authority replaces the Host header (RFC 9112).
void ToOriginForm(RequestHead& head) {
  size_t scheme = head.target.find("://");
  if (head.target.starts_with('/') || scheme == std::string::npos) return;
  if (std::string_view s(head.target.data(), scheme); s != "http" && s != "https") return;
  size_t path = head.target.find_first_of("/?", scheme + 3);
  head.headers.Set("Host",
                   std::string_view(head.target)
                       .substr(scheme + 3, path == std::string::npos ? path : path - scheme - 3));
  std::string rest = path == std::string::npos ? "/" : head.target.substr(path);
  head.target = rest.starts_with('/') ? rest : "/" + rest;
}

}  // namespace

void RenewRequestIds() { id_state.reset(); }

Connection::Connection(std::unique_ptr<Stream> stream, const ServerOptions& options,
                       const Handler& handler, const bool& stopping)
    : stream_(std::move(stream)),
      executor_(stream_->executor()),
      options_(options),
      handler_(handler),
      stopping_(stopping),
      tls_(stream_->PlainSocket() < 0),
      reader_(*stream_, options.max_header_bytes),
      watchdog_(*stream_) {}

Connection::~Connection() {
  // A client must be able to tell a cut answer from a whole one.
  bool whole = answer_ == Answer::kNone || answer_ == Answer::kDone;
  if (stream_) stream_->Close(!whole);
}

std::string Connection::PeerAddress() const { return stream_ ? stream_->PeerAddress() : ""; }

std::optional<uint64_t> Connection::ContentLength() const {
  if (!HasBody() && !head_.headers.Has("Content-Length")) return std::nullopt;
  return reader_.content_length();
}

// ---- the life of a connection ---------------------------------------------------

Task<void> Connection::Run() {
  for (;;) {
    if (!reader_.HasBuffered() && !co_await WaitForRequest()) co_return;
    if (!co_await ReadRequest()) co_return;
    BeginRequest();
    bool canceled = co_await CallHandler();
    // Nothing can be awaited once canceled; the destructor closes.
    if (canceled || !stream_ || !co_await Complete()) co_return;
    if (!keep_alive_ || !co_await DrainBody()) {
      if (!reader_.BodyDone()) co_await Linger();
      co_return;
    }
    answer_ = Answer::kNone;
    head_ = RequestHead();
    first_request_ = false;
    // A client that pipelines without end must not keep the loop to itself.
    if (reader_.HasBuffered()) co_await asio::post(executor_, asio::use_awaitable);
  }
}

Task<bool> Connection::WaitForRequest() {
  if (stopping_) co_return false;
  idle_ = true;
  auto scope = watchdog_.Limit(first_request_ ? options_.header_timeout : options_.idle_timeout);
  Status ready = co_await stream_->WaitReadable();
  idle_ = false;
  co_return ready.has_value();
}

void Connection::CloseIfIdle() {
  if (idle_ && stream_) stream_->Close();
}

Task<bool> Connection::ReadRequest() {
  Status read;
  {
    auto scope = watchdog_.Limit(options_.header_timeout);
    read = co_await reader_.ReadHead(head_);
  }
  if (read) co_return true;
  if (watchdog_.expired()) {
    co_await Refuse(408, "The header of the request did not arrive in time.");
    co_return false;
  }
  switch (read.error().code()) {
    case Code::kOutOfRange:
      co_await Refuse(431, read.error().message());
      break;
    case Code::kFailedPrecondition:
      co_await Refuse(505, read.error().message());
      break;
    case Code::kUnimplemented:
      co_await Refuse(501, read.error().message());
      break;
    case Code::kInvalidArgument:
      co_await Refuse(400, read.error().message());
      break;
    default:  // the client is gone
      break;
  }
  co_return false;
}

Task<void> Connection::Refuse(unsigned status, std::string why) {
  keep_alive_ = false;
  head_ = RequestHead();
  request_id_ = NewRequestId();
  if (co_await Send(Response::Text(status, why + "\n"))) co_await Linger();
}

void Connection::BeginRequest() {
  std::string_view wanted = head_.headers.Value("X-Request-Id");
  request_id_ = IsSaneRequestId(wanted) ? std::string(wanted) : NewRequestId();
  ToOriginForm(head_);
  keep_alive_ = reader_.keep_alive();
  expects_continue_ = head_.version == 11 && !reader_.BodyDone() &&
                      head_.headers.HasToken("Expect", "100-continue");
  fallback_status_ = 500;
  status_ = 0;
}

Task<bool> Connection::CallHandler() {
  std::string failure;
  try {
    co_await handler_(*this);
  } catch (const boost::system::system_error& e) {
    if (e.code() == asio::error::operation_aborted) co_return true;
    failure = e.what();
  } catch (const std::exception& e) {
    failure = e.what();
  } catch (...) {
    failure = "unknown exception";
  }
  if (!failure.empty())
    LogError("a request handler failed", {{"request_id", request_id_},
                                          {"method", head_.method},
                                          {"path", head_.Path()},
                                          {"error", failure}});
  co_return false;
}

Task<bool> Connection::Complete() {
  if (answer_ == Answer::kNone) {
    std::string text = fallback_status_ == 500
                           ? fmt::format("The server failed to answer (request {}).\n", request_id_)
                           : fmt::format("{}.\n", ReasonPhrase(fallback_status_));
    co_return (co_await Send(Response::Text(fallback_status_, std::move(text)))).has_value();
  }
  co_return answer_ == Answer::kDone;
}

Task<bool> Connection::DrainBody() {
  if (reader_.BodyDone()) co_return true;
  if (expects_continue_) co_return false;  // the client may send the body or not: no way to know
  std::string sink(8 << 10, '\0');
  auto scope = watchdog_.Stall(options_.body_stall_timeout);
  for (size_t drained = 0; !reader_.BodyDone();) {
    auto n = co_await reader_.ReadBody(sink);
    if (!n || (drained += *n) > kMaxDrainBytes) co_return false;
  }
  co_return true;
}

// Closing with unread bytes makes the kernel send RST, which can overtake the answer.
Task<void> Connection::Linger() {
  co_await stream_->ShutdownWrite();
  std::string sink(16 << 10, '\0');
  auto scope = watchdog_.Limit(options_.linger_timeout);
  for (;;) {
    auto n = co_await stream_->Read(sink);
    if (!n || *n == 0 || watchdog_.expired()) co_return;
  }
}

// ---- request body ----------------------------------------------------------------

Task<Result<size_t>> Connection::Read(std::span<char> buffer) {
  if (!stream_) co_return Fail(Code::kFailedPrecondition, "the connection was upgraded");
  CO_TRY(co_await InviteBody());
  auto scope = watchdog_.Stall(options_.body_stall_timeout);
  co_return CheckRead(co_await reader_.ReadBody(buffer));
}

Task<Result<size_t>> Connection::ReadPipe(Pipe& pipe) {
  if (!CanReadPipe()) co_return NoPipe();
  CO_TRY(co_await InviteBody());
  auto scope = watchdog_.Stall(options_.body_stall_timeout);
  co_return CheckRead(co_await reader_.ReadBody(pipe));
}

Task<Status> Connection::InviteBody() {
  if (!expects_continue_ || answered()) co_return Status();
  expects_continue_ = false;
  co_return co_await stream_->Write("HTTP/1.1 100 Continue\r\n\r\n");
}

template <class T>
Result<T> Connection::CheckRead(Result<T> read) {
  if (read) return read;
  keep_alive_ = false;
  if (watchdog_.expired()) {
    fallback_status_ = 408;
    return Fail(Code::kDeadlineExceeded, "the client stopped sending the request");
  }
  // Broken framing, or a body that ends early: not a failure of ours.
  Code code = read.error().code();
  if (code == Code::kInvalidArgument || code == Code::kDataLoss) fallback_status_ = 400;
  return read;
}

// ---- answer -----------------------------------------------------------------------

bool Connection::AnswerHasNoBody(unsigned status) const {
  return head_.method == "HEAD" || status == 204 || status == 304 || status < 200;
}

std::string Connection::BuildHead(const ResponseHead& head,
                                  std::optional<uint64_t> content_length) {
  status_ = head.status;
  // What will not be drained costs the connection; say so.
  if (expects_continue_ || reader_.remaining() > kMaxDrainBytes || stopping_ ||
      head.headers.HasToken("Connection", "close"))
    keep_alive_ = false;
  bool length_of_head_answer = head_.method == "HEAD" && head.headers.Has("Content-Length");
  std::string out;
  out.reserve(256);
  AppendStatusLine(out, head.status);
  for (const auto& [name, value] : head.headers) {
    if (length_of_head_answer && EqualsIgnoreCase(name, "Content-Length"))
      AppendField(out, name, value);
    else if (!IsFramingHeader(name) && !EqualsIgnoreCase(name, "Connection") &&
             !EqualsIgnoreCase(name, "Keep-Alive") && !EqualsIgnoreCase(name, "X-Request-Id"))
      AppendField(out, name, value);
  }
  AppendField(out, "X-Request-Id", request_id_);
  bool may_have_body = head.status != 204 && head.status != 304 && head.status >= 200;
  if (may_have_body && !length_of_head_answer) {
    if (content_length)
      AppendField(out, "Content-Length", std::to_string(*content_length));
    else if (head_.version == 11)
      AppendField(out, "Transfer-Encoding", "chunked");
    else
      keep_alive_ = keep_alive_ && AnswerHasNoBody(head.status);
  }
  if (!keep_alive_)
    AppendField(out, "Connection", "close");
  else if (head_.version == 10)
    AppendField(out, "Connection", "keep-alive");
  out += "\r\n";
  return out;
}

Task<Status> Connection::WriteOut(std::string_view first, std::string_view second,
                                  std::string_view third) {
  // Broken until it is proven whole: this coroutine may be canceled or destroyed while it waits.
  Answer before = std::exchange(answer_, Answer::kBroken);
  auto scope = watchdog_.Stall(options_.body_stall_timeout);
  Status written = co_await stream_->Write(first, second, third);
  if (written) {
    answer_ = before;
  } else if (watchdog_.expired()) {
    co_return Fail(Code::kDeadlineExceeded, "the client stopped reading the answer");
  }
  co_return written;
}

Task<Status> Connection::Send(Response response) {
  if (!stream_ || answered())
    co_return Fail(Code::kFailedPrecondition, "the request has been answered already");
  std::string head = BuildHead(response, response.body.size());
  answer_ = Answer::kDone;
  std::string_view body = response.body;
  if (AnswerHasNoBody(response.status)) body = {};
  co_return co_await WriteOut(head, body);
}

Task<Status> Connection::StartStream(ResponseHead head, std::optional<uint64_t> content_length,
                                     std::string_view first) {
  if (!stream_ || answered())
    co_return Fail(Code::kFailedPrecondition, "the request has been answered already");
  std::string text = BuildHead(head, content_length);
  if (AnswerHasNoBody(head.status)) {
    answer_ = Answer::kNoBody;
    first = {};
  } else if (content_length) {
    answer_ = Answer::kLength;
    answer_left_ = *content_length;
  } else {
    answer_ = head_.version == 11 ? Answer::kChunked : Answer::kUntilClose;
  }
  if (first.empty()) co_return co_await WriteOut(text);
  CO_TRY(Account(first.size()));
  if (answer_ != Answer::kChunked) co_return co_await WriteOut(text, first);
  AppendChunkSize(text, first.size());
  co_return co_await WriteOut(text, first, kChunkEnd);
}

Status Connection::Account(uint64_t size) {
  switch (answer_) {
    case Answer::kLength:
      if (size <= answer_left_) {
        answer_left_ -= size;
        return {};
      }
      answer_ = Answer::kBroken;
      return Fail(Code::kInternal, "the answer is longer than its Content-Length");
    case Answer::kNoBody:
    case Answer::kChunked:
    case Answer::kUntilClose:
      return {};
    case Answer::kBroken:
      return Fail(Code::kUnavailable, "the connection is broken");
    default:
      return Fail(Code::kFailedPrecondition, "no streamed answer has begun");
  }
}

Task<Status> Connection::Write(std::string_view data) {
  CO_TRY(Account(data.size()));
  if (data.empty() || answer_ == Answer::kNoBody) co_return Status();
  if (answer_ != Answer::kChunked) co_return co_await WriteOut(data);
  std::string size;
  AppendChunkSize(size, data.size());
  co_return co_await WriteOut(size, data, kChunkEnd);
}

Task<Status> Connection::WritePipe(Pipe& pipe, size_t size) {
  if (!CanWritePipe()) co_return NoPipe();
  CO_TRY(Account(size));
  Answer before = std::exchange(answer_, Answer::kBroken);
  auto scope = watchdog_.Stall(options_.body_stall_timeout);
  Status written = co_await pipe.Drain(*stream_, size);
  if (written) answer_ = before;
  if (!written && watchdog_.expired())
    co_return Fail(Code::kDeadlineExceeded, "the client stopped reading the answer");
  co_return written;
}

Task<Status> Connection::FinishStream(std::string_view last) {
  CO_TRY(Account(last.size()));
  if (answer_ == Answer::kLength && answer_left_ > 0) {
    answer_ = Answer::kBroken;
    co_return Fail(Code::kInternal, "the answer is shorter than its Content-Length");
  }
  Answer kind = std::exchange(answer_, Answer::kDone);
  if (kind == Answer::kNoBody) co_return Status();
  if (kind == Answer::kChunked) {
    std::string size;
    if (last.empty()) co_return co_await WriteOut(kLastChunk);
    AppendChunkSize(size, last.size());
    co_return co_await WriteOut(size, last, "\r\n0\r\n\r\n");
  }
  if (last.empty()) co_return Status();
  co_return co_await WriteOut(last);
}

Task<Status> Connection::SendFile(int fd, uint64_t offset, uint64_t size) {
  CO_TRY(Account(size));
  if (size == 0 || answer_ == Answer::kNoBody) co_return Status();
  std::string chunk;
  AppendChunkSize(chunk, size);
  if (answer_ == Answer::kChunked) CO_TRY(co_await WriteOut(chunk));
  Answer kind = std::exchange(answer_, Answer::kBroken);
  {
    auto scope = watchdog_.Stall(options_.body_stall_timeout);
    Status sent = co_await stream_->SendFile(fd, offset, size);
    if (!sent && watchdog_.expired())
      co_return Fail(Code::kDeadlineExceeded, "the client stopped reading the answer");
    CO_TRY(std::move(sent));
  }
  answer_ = kind;
  if (kind == Answer::kChunked) co_return co_await WriteOut(kChunkEnd);
  co_return Status();
}

void Connection::Abort() {
  answer_ = Answer::kBroken;
  if (stream_) stream_->Close(true);
}

Task<void> Connection::ClientGone() {
  // While the request's own body is unread only a reset can be noticed: an end of the stream stands
  // behind bytes that are the handler's to read.
  constexpr std::chrono::milliseconds kLookAgain{250};
  bool full = false;
  while (stream_) {
    if (!reader_.BodyDone() || full) {
      Status broken = co_await WithDeadline(kLookAgain, "waiting", stream_->WaitBroken());
      if (broken || broken.error().code() != Code::kDeadlineExceeded) co_return;
      continue;
    }
    if (!co_await stream_->WaitReadable()) co_return;
    auto filled = reader_.Fill();  // a pipelined request is no sign of leaving
    full = !filled && filled.error().code() == Code::kResourceExhausted;
    if (!filled && !full) co_return;
  }
}

Result<std::unique_ptr<Stream>> Connection::Upgrade(std::string& buffered) {
  if (!stream_ || answered())
    return Fail(Code::kFailedPrecondition, "the request has been answered already");
  buffered = reader_.TakeBuffered();
  answer_ = Answer::kDone;
  return std::move(stream_);
}

Task<Result<std::string>> Exchange::ReadAll(size_t max_bytes) {
  constexpr size_t kStep = 16 << 10;
  auto too_large = [&] {
    fallback_status_ = 413;
    return Fail(Code::kOutOfRange, "the request body is larger than {} bytes", max_bytes);
  };
  std::string body;
  if (!HasBody()) co_return body;
  auto length = ContentLength();
  if (length && *length > max_bytes) co_return too_large();
  for (size_t filled = 0;;) {
    // What a client announces is not trusted with memory before the bytes come.
    size_t want =
        length ? std::min<uint64_t>(*length, std::max(kStep, 2 * filled)) : filled + kStep;
    if (want == filled) co_return body;
    body.resize(want);
    CO_TRY_ASSIGN(size_t n, co_await Read(std::span(body).subspan(filled)));
    filled += n;
    body.resize(filled);
    if (n == 0) co_return body;
    if (filled > max_bytes) co_return too_large();
  }
}

}  // namespace caisson::http

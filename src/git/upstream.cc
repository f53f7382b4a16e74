#include "git/upstream.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "base/text.h"
#include "git/internet.h"
#include "http/tls.h"

namespace caisson::git {
namespace {

using namespace asio::experimental::awaitable_operators;

constexpr size_t kBufferBytes = 64 << 10;
constexpr size_t kMaxText = 1000;

// Waits until it is canceled.
Task<void> Forever() {
  asio::steady_timer never(co_await asio::this_coro::executor,
                           asio::steady_timer::time_point::max());
  co_await never.async_wait(kAwait);
}

}  // namespace

Result<Origin> ParseOrigin(std::string_view base_url) {
  Origin origin;
  std::string_view rest = base_url;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
    origin.tls = false;
  } else {
    return Fail(Code::kInvalidArgument, "\"{}\" does not begin with https:// or http://.",
                base_url);
  }
  size_t slash = rest.find('/');
  origin.host = rest.substr(0, slash);
  if (slash != std::string_view::npos) origin.path = rest.substr(slash);
  while (origin.path.ends_with('/')) origin.path.pop_back();
  if (origin.host.empty() || origin.host.find_first_of("@?#\\ ") != std::string::npos ||
      origin.path.find_first_of("?#\\ ") != std::string::npos)
    return Fail(Code::kInvalidArgument, "\"{}\" is not the address of a server.", base_url);
  size_t bracket = origin.host.rfind(']');
  size_t colon = origin.host.rfind(':');
  bool has_port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  origin.host_port = has_port ? origin.host : origin.host + (origin.tls ? ":443" : ":80");
  return origin;
}

std::optional<std::string> SameOriginTarget(const Origin& origin, std::string_view location) {
  std::string own = (origin.tls ? "https://" : "http://") + origin.host;
  if (location.starts_with(own)) location.remove_prefix(own.size());
  // SECURITY: "//host/x" would be another host, and so would "https://own.host.example".
  if (!location.starts_with('/') || location.starts_with("//")) return std::nullopt;
  return std::string(location);
}

Task<Result<std::unique_ptr<http::ClientConnection>>> ConnectTo(Origin origin,
                                                                UpstreamLimits limits) {
  http::ClientOptions options{.max_header_bytes = limits.max_header_bytes,
                              .stall_timeout = limits.stall_timeout};
  if (origin.internet_only)
    co_return co_await http::ConnectTls(origin.host_port, "", limits.connect_timeout, options,
                                        CheckInternet);
  if (origin.tls)
    co_return co_await http::ConnectTls(origin.host_port, "", limits.connect_timeout, options);
  co_return co_await http::ClientConnection::Connect(origin.host_port, limits.connect_timeout,
                                                     options);
}

Relay::Relay(http::Exchange& exchange, http::ClientConnection& connection, RequestBody& body,
             Filter filter)
    : exchange_(exchange), connection_(connection), body_(body), filter_(std::move(filter)) {}

Task<Relay::End> Relay::Run(http::RequestHead head) {
  Status sent = co_await connection_.SendHead(std::move(head), body_.Length(), body_.kept());
  if (!sent) {
    text_ = sent.error().message();
    co_return End::kNoAnswer;
  }
  auto winner = co_await (Receive() || Supply());
  co_return winner.index() == 0 ? std::get<0>(winner) : End::kClientGone;
}

// Passes the rest of the request's body on. Returns only when the client is gone.
Task<void> Relay::Supply() {
  while (!body_.whole()) {
    auto piece = co_await body_.Next();
    if (!piece) co_return;
    Status written =
        piece->empty() ? co_await connection_.FinishBody() : co_await connection_.WriteBody(*piece);
    // A server that does not want the rest may still send an answer that says so.
    if (!written) co_await Forever();
  }
  co_await exchange_.ClientGone();
}

Task<Relay::End> Relay::Receive() {
  auto head = co_await connection_.ReadHead();
  if (!head) {
    text_ = head.error().message();
    co_return End::kNoAnswer;
  }
  status_ = head->status;
  auto headers = filter_(*head);
  if (!headers) {
    location_ = head->headers.Value("Location");
    if (head->headers.Value("Content-Type").starts_with("text/plain")) co_await ReadText();
    co_return End::kStatus;
  }
  bool empty = status_ == 204 || status_ == 304;
  http::ResponseHead inside{.status = status_, .headers = std::move(*headers)};
  Status begun = co_await exchange_.StartStream(
      std::move(inside), empty ? std::optional<uint64_t>(0) : connection_.ContentLength());
  if (!begun) co_return End::kClientGone;
  if (!empty) co_return co_await PassAnswer();
  co_return co_await exchange_.FinishStream() ? End::kPassed : End::kClientGone;
}

Task<Relay::End> Relay::PassAnswer() {
  std::string buffer(kBufferBytes, '\0');
  for (;;) {
    auto read = co_await connection_.ReadBody(buffer);
    if (!read) co_return End::kBroken;
    if (*read == 0) break;
    Status written = co_await exchange_.Write(std::string_view(buffer).substr(0, *read));
    if (!written) co_return End::kClientGone;
  }
  co_return co_await exchange_.FinishStream() ? End::kPassed : End::kClientGone;
}

Task<void> Relay::ReadText() {
  std::string buffer(kMaxText, '\0');
  while (text_.size() < kMaxText) {
    auto read = co_await connection_.ReadBody(buffer);
    if (!read || *read == 0) break;
    text_ += buffer.substr(0, std::min(*read, kMaxText - text_.size()));
  }
  text_ = ToUtf8(text_);
}

}  // namespace caisson::git

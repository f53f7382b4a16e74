#include "forge/transport.h"

#include "base/text.h"
#include "http/tls.h"

namespace caisson::forge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxConnections = 8;
constexpr size_t kMaxIdle = 4;
constexpr auto kMaxIdleTime = std::chrono::seconds(20);
constexpr size_t kMaxAnswer = 16 << 20;

// Counts the exchanges that are under way, however they end.
class Turn {
 public:
  Turn(size_t& busy, Condition& freed) : busy_(busy), freed_(freed) { ++busy_; }
  ~Turn() {
    --busy_;
    freed_.Notify();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  size_t& busy_;
  Condition& freed_;
};

std::chrono::milliseconds Left(Clock::time_point end) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

}  // namespace

Result<Endpoint> ParseEndpoint(std::string_view url) {
  Endpoint endpoint;
  std::string_view rest = Trim(url);
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    endpoint.tls = false;
    rest.remove_prefix(7);
  } else {
    return Fail(Code::kInvalidArgument, "The URL of GitHub's API must begin with https://.");
  }
  size_t slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  std::string_view path = slash == rest.npos ? "" : rest.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (authority.empty() || rest.find_first_of("?#@ ") != rest.npos)
    return Fail(Code::kInvalidArgument,
                "The URL of GitHub's API must be https://HOST or https://HOST/PATH.");
  endpoint.host = authority;
  endpoint.host_port = authority;
  bool has_port = authority.rfind(':') != authority.npos && !authority.ends_with(']');
  if (!has_port) endpoint.host_port += endpoint.tls ? ":443" : ":80";
  endpoint.prefix = path;
  return endpoint;
}

Transport::Transport(asio::any_io_executor executor, Endpoint endpoint)
    : endpoint_(std::move(endpoint)), freed_(std::move(executor)) {}

Task<Transport::Outcome> Transport::Exchange(http::RequestHead head, std::string body,
                                             bool repeatable, Milliseconds timeout) {
  auto end = Clock::now() + timeout;
  if (Status turn = co_await WaitForTurn(timeout); !turn)
    co_return Outcome{tl::unexpected(turn.error())};
  Turn turn(busy_, freed_);
  // What must not be sent twice never takes a connection that the server may have just closed.
  auto connection = co_await Take(/*fresh=*/!repeatable, Left(end));
  if (!connection) co_return Outcome{tl::unexpected(connection.error())};
  head.headers.Set("Host", endpoint_.host);
  auto answer =
      co_await WithDeadline(Left(end), "asking GitHub",
                            (*connection)->Fetch(std::move(head), std::move(body), kMaxAnswer));
  if (!answer) co_return Outcome{tl::unexpected(answer.error()), /*maybe_done=*/true};
  Keep(std::move(*connection));
  co_return Outcome{std::move(answer)};
}

Task<Status> Transport::WaitForTurn(Milliseconds timeout) {
  auto end = Clock::now() + timeout;
  while (busy_ >= kMaxConnections)
    if (!co_await freed_.Wait(end) && busy_ >= kMaxConnections)
      co_return Fail(Code::kUnavailable, "too many requests to GitHub are under way");
  co_return Status();
}

Task<Result<Transport::Connection>> Transport::Take(bool fresh, Milliseconds timeout) {
  std::erase_if(idle_, [](const Idle& one) {
    return Clock::now() - one.since > kMaxIdleTime || !one.connection->Reusable();
  });
  if (!fresh && !idle_.empty()) {
    Connection connection = std::move(idle_.back().connection);
    idle_.pop_back();
    co_return connection;
  }
  if (endpoint_.tls) co_return co_await http::ConnectTls(endpoint_.host_port, "", timeout);
  co_return co_await http::ClientConnection::Connect(endpoint_.host_port, timeout);
}

void Transport::Keep(Connection connection) {
  if (connection->Reusable() && idle_.size() < kMaxIdle)
    idle_.push_back({std::move(connection), Clock::now()});
}

}  // namespace caisson::forge

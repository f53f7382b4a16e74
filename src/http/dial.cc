// Dial and ClientConnection::Connect, apart from the rest so that a static program that never
// connects by name does not pull the resolver in.
#include "http/dial.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/text.h"
#include "http/client.h"

namespace caisson::http {
namespace {

using asio::ip::tcp;

Task<Result<std::vector<tcp::endpoint>>> Resolve(HostPort where) {
  std::vector<tcp::endpoint> found;
  boost::system::error_code not_numeric;
  auto address = asio::ip::make_address(where.host, not_numeric);
  if (!not_numeric) {
    found.emplace_back(address, where.port);
    co_return found;
  }
  tcp::resolver resolver(co_await asio::this_coro::executor);
  auto [ec, results] =
      co_await resolver.async_resolve(where.host, std::to_string(where.port), kAwait);
  if (ec) co_return tl::unexpected(FromEc(ec, fmt::format("looking up {}", where.host)));
  for (const auto& entry : results) found.push_back(entry.endpoint());
  co_return found;
}

}  // namespace

Result<HostPort> ParseHostPort(std::string_view text) {
  size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && colon > 0) {
    std::string_view host = text.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
      host = host.substr(1, host.size() - 2);
    if (auto port = ParseInt<uint16_t>(text.substr(colon + 1)))
      return HostPort{std::string(host), *port};
  }
  return Fail(Code::kInvalidArgument, "\"{}\" is not HOST:PORT", text);
}

Task<Result<UniqueFd>> Dial(HostPort where, AddressCheck check) {
  CO_TRY_ASSIGN(auto endpoints, co_await Resolve(where));
  // SECURITY: what is checked is what is connected to; nobody is asked for the name again.
  if (check)
    for (const tcp::endpoint& endpoint : endpoints) CO_TRY(check(endpoint.address()));
  tcp::socket socket(co_await asio::this_coro::executor);
  auto [ec, endpoint] = co_await asio::async_connect(socket, endpoints, kAwait);
  if (ec)
    co_return tl::unexpected(
        FromEc(ec, fmt::format("connecting to {}:{}", where.host, where.port)));
  co_return UniqueFd(socket.release());
}

Task<Result<std::unique_ptr<ClientConnection>>> ClientConnection::Connect(
    std::string host_port, std::chrono::milliseconds timeout, ClientOptions options) {
  CO_TRY_ASSIGN(HostPort where, ParseHostPort(host_port));
  CO_TRY_ASSIGN(UniqueFd socket,
                co_await WithDeadline<UniqueFd>(timeout, fmt::format("connecting to {}", host_port),
                                                Dial(std::move(where))));
  CO_TRY_ASSIGN(auto stream,
                MakeSocketStream(co_await asio::this_coro::executor, std::move(socket)));
  co_return std::make_unique<ClientConnection>(std::move(stream), options);
}

}  // namespace caisson::http

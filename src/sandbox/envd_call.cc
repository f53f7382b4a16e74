#include "sandbox/envd_call.h"

#include <boost/asio/ip/tcp.hpp>

#include "http/client.h"

namespace caisson::sandbox {
namespace {

constexpr uint16_t kEnvdPort = 49983;
constexpr size_t kMaxAnswer = 1 << 20;

// Connects one of the engine's sockets to a port of the sandbox's own loopback.
Task<Result<UniqueFd>> ConnectInside(UniqueFd raw, uint16_t port) {
  using asio::ip::tcp;
  tcp::socket socket(co_await asio::this_coro::executor);
  boost::system::error_code failed;
  int fd = raw.Release();
  socket.assign(tcp::v6(), fd, failed);
  if (failed) {
    raw.Reset(fd);
    co_return tl::unexpected(FromEc(failed, "using a socket into the sandbox"));
  }
  auto address = asio::ip::make_address_v6(asio::ip::v4_mapped, asio::ip::address_v4::loopback());
  auto [ec] = co_await socket.async_connect(tcp::endpoint(address, port), kAwait);
  if (ec) co_return tl::unexpected(FromEc(ec, "connecting to envd"));
  UniqueFd connected(socket.release(failed));
  if (failed) co_return tl::unexpected(FromEc(failed, "using a socket into the sandbox"));
  co_return connected;
}

}  // namespace

Task<Result<std::unique_ptr<http::Stream>>> ConnectEnvd(UniqueFd socket) {
  CO_TRY_ASSIGN(UniqueFd connected, co_await ConnectInside(std::move(socket), kEnvdPort));
  co_return http::MakeSocketStream(co_await asio::this_coro::executor, std::move(connected));
}

Task<Result<http::Response>> CallEnvd(UniqueFd socket, http::RequestHead request,
                                      std::string body) {
  CO_TRY_ASSIGN(auto stream, co_await ConnectEnvd(std::move(socket)));
  http::ClientConnection connection(std::move(stream));
  request.headers.Set("Host", "localhost");
  if (!body.empty()) request.headers.Set("Content-Type", "application/json");
  co_return co_await connection.Fetch(std::move(request), std::move(body), kMaxAnswer);
}

}  // namespace caisson::sandbox

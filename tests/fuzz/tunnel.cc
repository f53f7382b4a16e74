// What the relay of a tunnel sends: whoever has root in the sandbox can put anything in its place,
// and the server reads it.
#include "fuzz/support.h"
#include "sdk/tunnel_connections.h"

namespace caisson::fuzz {
namespace {

constexpr sdk::TunnelLimits kLimits{.connections = 3, .window = 1'000};

Task<Result<int>> Carry(std::string_view bytes, size_t piece) {
  auto made = sdk::PrivateListener::Make();
  Check(made.has_value(), "no listener could be made");
  sdk::TunnelConnections connections(Loop().get_executor(), made->listener, kLimits);
  sdk::TunnelFrameReader frames;
  std::string again;
  std::string_view rest = bytes;
  for (Status fine; fine && !rest.empty(); rest.remove_prefix(std::min(piece, rest.size()))) {
    frames.Add(rest.substr(0, piece));
    while (fine) {
      auto frame = frames.Next();
      if (!frame || !*frame) {
        if (!frame) fine = tl::unexpected(frame.error());
        break;
      }
      Check((*frame)->data.size() <= sdk::kMaxTunnelData, "a frame that is too long");
      sdk::AppendFrame(again, (*frame)->connection, (*frame)->kind, (*frame)->data);
      fine = connections.Take(std::move(**frame));
      Check(connections.size() <= kLimits.connections, "too many connections");
    }
    // Everything that waits may happen now.
    co_await asio::post(Loop(), asio::use_awaitable);
  }
  Check(bytes.starts_with(again), "frames that were not sent");
  co_await connections.Stop();
  co_return 0;
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  (void)fuzz::Run(fuzz::Carry(bytes, data[0] + 1));
  return 0;
}

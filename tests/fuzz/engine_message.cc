// Messages between server, engine and launchers. The server is the part that speaks to the world:
// if it were taken over, the engine must still survive whatever it sends.
#include <sys/socket.h>

#include <boost/json.hpp>

#include "engine/protocol.h"
#include "fuzz/support.h"

namespace caisson::fuzz {
namespace {

namespace json = boost::json;

// decode(encode(x)) == x, compared as JSON.
template <class Decode, class Encode>
void CheckRoundTrip(const json::value& value, Decode decode, Encode encode) {
  auto decoded = decode(value);
  if (!decoded) return;
  json::object once = encode(*decoded);
  auto again = decode(once);
  Check(again && encode(*again) == once, "a value changed on its way");
}

void DecodeAll(engine::Message message) {
  using namespace engine;
  json::value value = message.head;
  CheckRoundTrip(value, DecodeInstance, EncodeInstance);
  CheckRoundTrip(value, DecodeUsage, EncodeUsage);
  CheckRoundTrip(value, DecodeSaved, EncodeSaved);
  CheckRoundTrip(value, DecodeLimits, EncodeLimits);
  CheckRoundTrip(value, DecodeCapabilities, EncodeCapabilities);
  (void)DecodeStatus(message.head);
  (void)GetString(message.head, "op");
  (void)GetInt(message.head, "call");
  (void)GetInt(message.head, "port");
  (void)GetStrings(message.head, "ids");
  if (auto reason = GetString(message.head, "reason")) (void)DecodeExitReason(*reason);
  std::string body = message.body;
  auto spec = DecodeSpec(std::move(message));
  if (!spec) return;
  Check(spec->boot == body, "boot data changed on its way");
  auto again = DecodeSpec(EncodeSpec(*spec));
  Check(again && again->id == spec->id && again->snapshot == spec->snapshot, "a spec changed");
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  static engine::SocketPair pair = engine::MakeSocketPair().value();
  if (size == 0 || send(pair.first.get(), data, size, MSG_DONTWAIT) < 0) return 0;
  auto message = engine::Receive(pair.second.get());
  if (!message) return 0;
  fuzz::Check(message->fds.empty(), "a descriptor from nowhere");
  fuzz::DecodeAll(std::move(*message));
  return 0;
}

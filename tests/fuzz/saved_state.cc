// What lies on disk of a saved sandbox: its manifest, and the messages in CRIU's images. The first
// byte says which.
#include "engine/manifest.h"
#include "engine/protobuf_wire.h"
#include "fuzz/support.h"

namespace caisson::fuzz {
namespace {

void ReadManifest(std::string_view text) {
  auto manifest = engine::ParseManifest(text);
  if (!manifest) {
    Check(!manifest.error().message().empty(), "a refusal without a reason");
    return;
  }
  for (const std::string& layer : manifest->layers)
    Check(layer.find('/') == std::string::npos && layer != "..", "a layer leads elsewhere");
  for (const auto& [name, sum] : manifest->files)
    Check(name.find('/') == std::string::npos && name != "..", "a file leads elsewhere");
  std::string once = engine::SerializeManifest(*manifest);
  auto again = engine::ParseManifest(once);
  Check(again && engine::SerializeManifest(*again) == once, "a manifest changed on its way");
}

// Fields written as they were read give the same bytes.
void ReadWire(std::string_view message) {
  engine::WireReader reader(message);
  engine::WireWriter copy;
  for (;;) {
    auto field = reader.Next();
    if (!field) return;
    if (!*field) break;
    Check((*field)->bytes.size() <= message.size(), "a field is longer than its message");
    copy.Raw((*field)->raw);
  }
  Check(copy.data() == message, "fields do not make up their message");
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    caisson::fuzz::ReadManifest(text);
  } else {
    caisson::fuzz::ReadWire(text);
  }
  return 0;
}

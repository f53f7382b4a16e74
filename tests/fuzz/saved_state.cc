// What lies on disk of a saved sandbox: its manifest, the messages in CRIU's images, and the pack
// of these. The first byte says which.
#include "engine/image_pack.h"
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

// Files packed as they were unpacked give the same bytes.
void ReadPack(std::string_view pack) {
  auto files = engine::UnpackFiles(pack);
  if (!files) return;
  std::string again;
  for (const auto& [name, content] : *files)
    again += engine::PackHead(name, static_cast<uint32_t>(content.size())).append(content);
  Check(again == pack, "a pack changed on its way");
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      caisson::fuzz::ReadManifest(text);
      break;
    case 1:
      caisson::fuzz::ReadWire(text);
      break;
    default:
      caisson::fuzz::ReadPack(text);
  }
  return 0;
}

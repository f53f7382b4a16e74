// Compressed uploads: what is broken is refused, what we compress comes back, and no input makes
// memory grow.
#include "envd/content_encoding.h"
#include "fuzz/support.h"

namespace {

constexpr size_t kMaxOutput = 4 << 20;

auto Gunzip(std::string_view data, size_t piece) {
  using namespace caisson;
  envd::GunzipSource source(std::make_unique<fuzz::MemorySource>(data, piece));
  return fuzz::Run(fuzz::ReadAll(source, kMaxOutput));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto whole = Gunzip(text, size);
  auto pieces = Gunzip(text, data[0] + 1);
  fuzz::Check(whole.has_value() == pieces.has_value(), "pieces give another result");
  if (whole && whole->size() < kMaxOutput / 2)
    fuzz::Check(*whole == *pieces, "pieces give other bytes");
  envd::Gzip gzip;
  size_t half = text.size() / 2;
  std::string packed = gzip.Compress(text.substr(0, half), false);
  packed += gzip.Compress(text.substr(half), true);
  auto back = Gunzip(packed, packed.size());
  fuzz::Check(back && *back == text, "what was compressed does not come back");
  return 0;
}

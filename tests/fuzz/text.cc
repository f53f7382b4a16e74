// The small parsers that everything else uses: encodings, times, numbers, addresses.
#include "base/text.h"

#include "base/encoding.h"
#include "base/time.h"
#include "engine/egress.h"
#include "fuzz/support.h"

namespace caisson::fuzz {
namespace {

void CheckEncodings(std::string_view text) {
  Check(Base64Decode(Base64Encode(text)) == text, "base64 does not come back");
  Check(Base64Decode(Base64UrlEncode(text)) == text, "base64url does not come back");
  Check(PercentDecode(PercentEncode(text)) == text, "percent-encoding does not come back");
  (void)Base64Decode(text);
  (void)PercentDecode(text, true);
  std::string utf8 = ToUtf8(text);
  Check(ToUtf8(utf8) == utf8, "repaired text needs repair");
  Check(ConstantTimeEqual(text, text), "a text differs from itself");
}

void CheckTime(std::string_view text) {
  auto time = ParseTime(text);
  if (!time) return;
  auto again = ParseTime(FormatTime(*time));
  Check(again && *again == *time, "a time changed on its way");
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::CheckEncodings(text);
  fuzz::CheckTime(text);
  (void)ParseDurationMs(text);
  (void)ParseSize(text);
  if (auto block = engine::ParseBlock(text))
    fuzz::Check(block->Contains(*block), "a block does not contain itself");
  (void)engine::IsHostPattern(text);
  return 0;
}

// Multipart uploads: however the body is cut into pieces, the same parts come out.
#include "envd/multipart.h"

#include "fuzz/support.h"

namespace caisson::fuzz {
namespace {

constexpr size_t kMaxPartHeader = 2000;

// All complete parts as one text.
Task<Result<std::string>> ReadParts(std::string_view body, size_t piece, std::string_view boundary,
                                    std::string& parts) {
  MemorySource source(body, piece);
  envd::MultipartReader reader(source, boundary, kMaxPartHeader);
  for (;;) {
    CO_TRY_ASSIGN(auto part, co_await reader.NextPart());
    if (!part) co_return parts;
    std::string content;
    for (;;) {
      CO_TRY_ASSIGN(std::string_view next, co_await reader.Next());
      if (next.empty()) break;
      content += next;
    }
    parts += part->name + '\0' + part->filename.value_or("-") + '\0' + content + '\0';
  }
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  if (size == 0) return 0;
  std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string whole, pieces, bytes;
  auto first = fuzz::Run(fuzz::ReadParts(body, size, "xyz", whole));
  auto second = fuzz::Run(fuzz::ReadParts(body, data[0] + 1, "xyz", pieces));
  auto third = fuzz::Run(fuzz::ReadParts(body, 1, "xyz", bytes));
  fuzz::Check(first.has_value() == second.has_value() && first.has_value() == third.has_value(),
              "pieces give another result");
  fuzz::Check(whole == pieces && whole == bytes, "pieces give other parts");
  return 0;
}

// Headers of /files requests: ranges, conditions, dates, codings, dispositions, metadata.
#include "envd/content_encoding.h"
#include "envd/http_file.h"
#include "envd/metadata.h"
#include "envd/multipart.h"
#include "fuzz/support.h"

namespace caisson::fuzz {
namespace {

void CheckRange(const http::Headers& headers, uint64_t size) {
  envd::RangeChoice choice = envd::ChooseRange(headers, size, 1'000'000);
  if (choice.kind != envd::RangeKind::kPart) return;
  Check(choice.range.size > 0, "an empty range");
  Check(choice.range.offset < size && choice.range.size <= size - choice.range.offset,
        "a range outside of the file");
}

void CheckDate(std::string_view text) {
  auto time = envd::ParseHttpDate(text);
  if (!time) return;
  auto again = envd::ParseHttpDate(envd::FormatHttpDate(*time));
  Check(again == time, "a date changed on its way");
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  FuzzedDataProvider input(data, size);
  auto length = input.ConsumeIntegral<uint64_t>();
  http::Headers headers;
  for (const char* name : {"Range", "If-Range", "If-Modified-Since", "If-None-Match"})
    headers.Add(name, input.ConsumeRandomLengthString(200));
  std::string key = input.ConsumeRandomLengthString(300);
  std::string text = input.ConsumeRemainingBytesAsString();
  headers.Add("X-Metadata-" + key, text);
  fuzz::CheckRange(headers, length);
  fuzz::CheckRange(headers, length % 1000);
  (void)envd::CheckConditions(headers, 1'000'000);
  fuzz::CheckDate(headers.Value("If-Modified-Since"));
  (void)envd::MetadataFromHeaders(headers);
  (void)envd::ChooseEncoding(text, (length & 1) != 0);
  (void)envd::ReadContentEncoding(text);
  (void)envd::MultipartBoundary(text);
  (void)envd::TypeByExtension(text);
  (void)envd::TypeByContent(text);
  std::string disposition = envd::ContentDisposition(text);
  fuzz::Check(disposition.find_first_of("\r\n") == std::string::npos, "a name breaks its header");
  (void)envd::ParseDisposition(text);
  return 0;
}

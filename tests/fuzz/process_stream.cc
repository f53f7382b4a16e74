// The events of a process as the envd of a sandbox sends them: whoever has root in the sandbox can
// put anything in its place, and the server reads it.
#include "sdk/process_stream.h"

#include <boost/json.hpp>

#include "base/text.h"
#include "fuzz/support.h"
#include "sdk/utf8_decoder.h"

namespace caisson::fuzz {
namespace {

Task<Result<int>> ReadEvents(std::string_view text, size_t piece) {
  auto connection =
      std::make_unique<http::ClientConnection>(std::make_unique<MemoryStream>(text, piece));
  auto stream = co_await sdk::ProcessStream::Open(std::move(connection),
                                                  {.method = "POST", .target = "/"}, {});
  if (!stream) co_return 0;
  sdk::Utf8Decoder decoder;
  std::string whole, decoded;
  for (;;) {
    auto event = co_await stream->Next();
    if (!event || !*event) break;
    Check((*event)->exit_code >= 0 && (*event)->exit_code < 256, "an exit code out of range");
    whole += (*event)->data;
    decoded += decoder.Take((*event)->data);
  }
  Check(decoded + decoder.Finish() == ToUtf8(whole), "pieces make another text than the whole");
  co_return 0;
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  (void)sdk::ErrorOfAnswer(500, text);
  std::string answer = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + std::string(text);
  (void)fuzz::Run(fuzz::ReadEvents(answer, data[0] + 1));
  return 0;
}

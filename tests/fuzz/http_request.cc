// Requests as a client sends them, and as we pass them on.
#include "fuzz/http_messages.h"

namespace caisson::fuzz {
namespace {

// What we would send for a request must be read back as the same request.
void CheckWritten(const Received<http::RequestHead>& request) {
  std::string text;
  if (!http::AppendRequestLine(text, request.head)) return;
  for (const auto& [name, value] : request.head.headers) {
    if (!http::IsFramingHeader(name)) http::AppendField(text, name, value);
  }
  http::AppendField(text, "Content-Length", std::to_string(request.body.size()));
  text += "\r\n" + request.body;
  auto again = ReadMessages<http::RequestHead>(text, text.size());
  Check(again.size() == 1, "a request that was written again is not one request");
  Check(again[0].head.method == request.head.method, "the method changed");
  Check(again[0].head.target == request.head.target, "the target changed");
  Check(again[0].body == request.body, "the body changed");
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const auto& request : fuzz::ReadInEveryWay<http::RequestHead>(text, data[0] + 1))
    fuzz::CheckWritten(request);
  return 0;
}

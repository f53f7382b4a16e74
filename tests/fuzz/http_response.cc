// Responses as a server inside a sandbox sends them: the gateway reads what a guest wrote.
#include "fuzz/http_messages.h"
#include "gateway/headers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (auto& response : fuzz::ReadInEveryWay<http::ResponseHead>(text, data[0] + 1)) {
    gateway::ForClient(response.head.headers, (data[0] & 1) != 0);
    std::string out;
    http::AppendStatusLine(out, response.head.status);
    for (const auto& [name, value] : response.head.headers) http::AppendField(out, name, value);
    fuzz::Check(out.find("\r\n\r\n") == std::string::npos, "a header field ends the header");
  }
  return 0;
}

// What a client sends on a WebSocket; the first byte says in which pieces it comes.
#include "fuzz/support.h"
#include "http/web_socket_frame.h"

namespace caisson::fuzz {
namespace {

constexpr size_t kMaxMessage = 4096;

// The messages as one text, up to a fault.
std::string ReadMessages(std::string_view bytes, size_t piece) {
  http::FrameParser parser(kMaxMessage);
  std::string all;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    parser.Feed(bytes.substr(0, piece));
    for (;;) {
      auto next = parser.Next();
      if (!next) return all + std::to_string(static_cast<int>(next.error().code));
      if (!*next) break;
      Check((*next)->data.size() <= kMaxMessage, "a message above the limit");
      all += http::MakeFrame((*next)->kind, (*next)->data);
    }
  }
  return all;
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson::fuzz;
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Check(ReadMessages(bytes, data[0] + size_t{1}) == ReadMessages(bytes, bytes.size() + 1),
        "pieces make other messages than the whole");
  return 0;
}

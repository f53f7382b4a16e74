// Queries and ids in URLs of the control plane.
#include "e2b/codec.h"
#include "e2b/listing.h"
#include "fuzz/support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  http::RequestHead head;
  head.target = text;
  fuzz::Check(head.Path().size() + head.QueryString().size() <= text.size(), "a longer target");
  auto query = e2b::DecodeListQuery(http::Query::Parse(text));
  fuzz::Check(!query || query->page.limit > 0, "an empty page");
  (void)e2b::DecodeMetadata(text);
  if (auto cursor = e2b::DecodeCursor(text)) {
    auto again = e2b::DecodeCursor(e2b::EncodeCursor(*cursor));
    fuzz::Check(again && again->id == cursor->id && again->ascending == cursor->ascending &&
                    again->started_at == cursor->started_at,
                "a cursor changed on its way");
  }
  auto id = e2b::DecodeSandboxId(text);
  fuzz::Check(!id || id->find_first_of("/.\0\n") == std::string::npos, "a strange sandbox id");
  return 0;
}

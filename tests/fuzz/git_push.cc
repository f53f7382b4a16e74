// The list of refs of a push, as any program in a sandbox may send it: what is found good names
// only the branches that may be pushed, however the bytes are cut, and a refusal is in git's
// protocol.
#include <algorithm>

#include "fuzz/support.h"
#include "git/pkt_line.h"
#include "git/push_request.h"
#include "git/request_body.h"

namespace caisson::fuzz {
namespace {

const git::PushRule kRule{{"task-7"}};

bool Feed(git::PushRequest& push, std::string_view data, size_t piece) {
  for (size_t at = 0; at < data.size() && !push.done(); at += piece)
    if (!push.Feed(data.substr(at, piece))) return false;
  return push.done();
}

void CheckReport(const git::PushRequest& push) {
  std::vector<std::string> why(push.updates().size(), "no");
  std::string report = git::RefusalReport(push, why, "A note.");
  for (std::string_view rest = report; !rest.empty();) {
    auto packet = git::ReadPacket(rest);
    Check(packet && *packet, "the report is not made of packets");
    rest.remove_prefix((*packet)->size);
  }
}

void CheckPush(std::string_view data, size_t piece) {
  git::PushRequest push, whole;
  bool good = Feed(push, data, piece);
  if (good != Feed(whole, data, data.size() + 1)) {
    // Only the bound on what is kept may depend on the pieces.
    Check(data.size() > git::PushRequest::kMaxBytes, "the pieces decide what is read");
    return;
  }
  if (!good) return;
  Check(push.updates().size() == whole.updates().size(), "the pieces decide what is read");
  Check(data.starts_with(push.bytes()), "what goes on is not what came");
  for (const git::RefUpdate& update : push.updates()) {
    if (!git::WhyRefused(kRule, update).empty()) continue;
    std::string_view ref = update.ref;
    Check(ref.starts_with("refs/heads/task-7"), "a ref that may not be pushed");
    ref.remove_prefix(17);
    Check(ref.empty() || ref[0] == '-' || ref[0] == '/', "a ref that may not be pushed");
    Check(ref.find("..") == ref.npos, "a ref that leads elsewhere");
  }
  CheckReport(push);
}

void CheckGunzip(std::string_view data) {
  git::Gunzip gunzip;
  gunzip.Give(data);
  size_t made = 0;
  for (;;) {
    auto piece = gunzip.Take();
    if (!piece || piece->empty() || (made += piece->size()) > 1 << 20) return;
  }
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  fuzz::CheckPush(text, data[0] + 1);
  fuzz::CheckGunzip(text);
  return 0;
}

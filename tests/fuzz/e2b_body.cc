// Bodies of the control plane: create, connect, resume, pause, fork, timeout, network.
#include "e2b/codec.h"
#include "e2b/fields.h"
#include "e2b/network.h"
#include "fuzz/support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto body = e2b::ParseBody(text, true);
  if (!body) return 0;
  e2b::Defaults defaults;
  for (e2b::Version version : {e2b::Version::kV1, e2b::Version::kV2}) {
    auto options = e2b::DecodeCreate(*body, version, defaults);
    fuzz::Check(!options || options->timeout.count() >= 0, "a negative life time");
    auto connect = e2b::DecodeConnect(*body, version, defaults);
    fuzz::Check(!connect || connect->timeout.count() >= 0, "a negative timeout");
  }
  auto timeout = e2b::DecodeTimeout(*body);
  fuzz::Check(!timeout || timeout->count() >= 0, "a negative timeout");
  auto refresh = e2b::DecodeRefresh(*body);
  fuzz::Check(!refresh || refresh->count() >= 15, "a refresh shorter than 15 seconds");
  auto resume = e2b::DecodeResume(*body, defaults);
  fuzz::Check(!resume || resume->timeout.count() >= 0, "a negative timeout");
  auto fork = e2b::DecodeFork(*body, defaults);
  fuzz::Check(!fork || fork->count > 0, "no fork at all");
  (void)e2b::DecodePause(*body);
  (void)e2b::DecodeNetworkUpdate(*body, {});
  return 0;
}

// envd's boot message and the fields of its JSON messages.
#include <boost/json/parse.hpp>

#include "envd/proto_json.h"
#include "envd/settings.h"
#include "fuzz/support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto settings = envd::ParseSettings(text)) {
    fuzz::Check(!settings->default_user.empty(), "no default user");
    fuzz::Check(settings->GlobalEnv().at("E2B_SANDBOX") == "true", "a variable is hidden");
  }
  boost::system::error_code ec;
  boost::json::value value = boost::json::parse(text, ec);
  if (ec || !value.is_object()) return 0;
  envd::Fields fields(value.get_object());
  constexpr std::pair<std::string_view, int> kNames[] = {{"SIGNAL_SIGTERM", 15}};
  for (std::string_view name : {"a", "accessToken", "processSelector", "pid"}) {
    (void)fields.String(name);
    (void)fields.Bool(name);
    (void)fields.Uint32(name);
    (void)fields.Bytes(name);
    (void)fields.Strings(name);
    (void)fields.StringMap(name);
    (void)fields.Message(name);
    (void)fields.Enum(name, kNames);
  }
  auto one = fields.OneOf({"pid", "tag"});
  fuzz::Check(!one || one->empty() || fields.Has(*one), "a oneof that is not there");
  return 0;
}

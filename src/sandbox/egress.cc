#include "sandbox/egress.h"

#include <boost/json.hpp>

#include "engine/egress.h"

namespace caisson::sandbox {
namespace {

namespace json = boost::json;

// A list of strings that may be missing.
Result<std::vector<std::string>> Rules(const json::object& network, std::string_view name) {
  std::vector<std::string> rules;
  const json::value* list = network.if_contains(name);
  if (!list) return rules;
  auto read = json::try_value_to<std::vector<std::string>>(*list);
  if (!read) return Fail(Code::kInvalidArgument, "{} must be a list of strings", name);
  return std::move(*read);
}

}  // namespace

Result<engine::Egress> MakeEgress(bool allow_internet, const std::string& network_json) {
  boost::system::error_code ec;
  json::value network = network_json.empty() ? json::object() : json::parse(network_json, ec);
  if (ec || !network.is_object())
    return Fail(Code::kInvalidArgument, "the network settings are not an object");
  engine::Egress egress;
  TRY_ASSIGN(egress.allow, Rules(network.get_object(), "allowOut"));
  TRY_ASSIGN(egress.deny, Rules(network.get_object(), "denyOut"));
  if (!allow_internet)
    for (const char* everything : {"0.0.0.0/0", "::/0"}) egress.deny.emplace_back(everything);
  TRY(engine::CheckEgress(egress));
  return egress;
}

}  // namespace caisson::sandbox

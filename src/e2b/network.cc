#include "e2b/network.h"

#include <boost/json.hpp>

#include "e2b/fields.h"
#include "engine/egress.h"
#include "sandbox/egress.h"

namespace caisson::e2b {
namespace {

namespace json = boost::json;

constexpr size_t kMaxEntries = 1000;  // of allowOut and of denyOut
constexpr size_t kMaxRules = 10, kMaxRuleDomain = 128, kMaxRuleHeaders = 20;
constexpr size_t kMaxHeaderName = 64, kMaxHeaderValue = 2048;
constexpr size_t kMaxHost = 255;
constexpr size_t kMaxHttpsPorts = 100;
constexpr int64_t kEnvdPort = 49983;

Status CheckRuleHeaders(std::string_view domain, const json::object& rule) {
  TRY_ASSIGN(const json::object* transform, TakeObject(rule, "rules.transform"));
  if (!transform) return {};
  TRY_ASSIGN(auto headers, TakeMap(*transform, "rules.transform.headers"));
  if (headers.size() > kMaxRuleHeaders)
    return Fail(Code::kInvalidArgument, "rules: '{}' has more than {} headers", domain,
                kMaxRuleHeaders);
  for (const auto& [name, value] : headers)
    if (name.empty() || name.size() > kMaxHeaderName || value.size() > kMaxHeaderValue)
      return Fail(Code::kInvalidArgument,
                  "rules: a header name of '{}' may have 1 to {} characters, its value up to {}",
                  domain, kMaxHeaderName, kMaxHeaderValue);
  return {};
}

Status CheckRules(const json::object& network) {
  TRY_ASSIGN(const json::object* rules, TakeObject(network, "rules"));
  if (!rules || rules->empty()) return {};
  if (rules->size() > kMaxRules)
    return Fail(Code::kInvalidArgument, "rules: at most {} domains are allowed", kMaxRules);
  for (const auto& [domain, list] : *rules) {
    std::string_view name = domain;
    if (name.empty() || name.size() > kMaxRuleDomain)
      return Fail(Code::kInvalidArgument, "rules: a domain may have 1 to {} characters",
                  kMaxRuleDomain);
    if (!list.is_array() || list.get_array().size() > 1)
      return Fail(Code::kInvalidArgument, "rules: '{}' must be a list of one rule", name);
    for (const json::value& rule : list.get_array()) {
      if (!rule.is_object())
        return Fail(Code::kInvalidArgument, "rules: '{}' must be a list of one rule", name);
      TRY(CheckRuleHeaders(name, rule.get_object()));
    }
  }
  return Fail(Code::kUnimplemented, "this server cannot change outgoing requests (rules) yet");
}

// What goes out. Appends the settings as asked for to `shown`.
Status DecodeEgress(const json::object& network, bool internet, json::object& shown) {
  TRY_ASSIGN(auto allow, TakeStrings(network, "allowOut"));
  TRY_ASSIGN(auto deny, TakeStrings(network, "denyOut"));
  TRY_ASSIGN(const json::object* proxy, TakeObject(network, "egressProxy"));
  if (proxy)
    return Fail(Code::kPermissionDenied,
                "egressProxy is not available on this server: its operator chooses the proxy of "
                "all sandboxes");
  if ((allow && allow->size() > kMaxEntries) || (deny && deny->size() > kMaxEntries))
    return Fail(Code::kInvalidArgument, "allowOut and denyOut may have at most {} entries",
                kMaxEntries);
  if (allow) shown["allowOut"] = json::value_from(*allow);
  if (deny) shown["denyOut"] = json::value_from(*deny);
  TRY(sandbox::MakeEgress(internet, json::serialize(shown)));
  return CheckRules(network);
}

// SECURITY: this text becomes the Host header of requests into the sandbox; nothing in it may end
// that header.
bool IsHostText(std::string_view text) {
  if (text.empty() || text.size() > kMaxHost) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(".-_:${}[]").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

Status CheckHttpsPorts(const json::object& network, json::object& shown) {
  TRY_ASSIGN(const json::array* ports, TakeArray(network, "network.httpsPorts"));
  if (!ports || ports->empty()) return {};
  if (ports->size() > kMaxHttpsPorts)
    return Fail(Code::kInvalidArgument, "network.httpsPorts may have at most {} entries",
                kMaxHttpsPorts);
  for (const json::value& port : *ports) {
    if (!port.is_int64() || port.get_int64() < 1 || port.get_int64() > 65535)
      return Fail(Code::kInvalidArgument, "network.httpsPorts must be a list of ports, 1 to 65535");
    if (port.get_int64() == kEnvdPort)
      return Fail(Code::kInvalidArgument, "network.httpsPorts cannot contain port {}", kEnvdPort);
  }
  shown["httpsPorts"] = *ports;
  return {};
}

Status CheckDnsServers(const json::object& network) {
  TRY_ASSIGN(auto servers, TakeStrings(network, "network.dnsServers"));
  if (!servers || servers->empty()) return {};
  for (const std::string& server : *servers)
    if (server.find('/') != std::string::npos || !engine::ParseBlock(server))
      return Fail(Code::kInvalidArgument, "network.dnsServers: '{}' is not an IP address", server);
  return Fail(Code::kUnimplemented,
              "this server cannot give a sandbox its own resolvers (network.dnsServers) yet");
}

// What comes in. Appends the settings as asked for to `shown`.
Status DecodeIngress(const json::object& network, bool secure, sandbox::NetworkOptions& options,
                     json::object& shown) {
  TRY_ASSIGN(auto open, TakeBool(network, "network.allowPublicTraffic"));
  TRY_ASSIGN(auto mask, TakeString(network, "network.maskRequestHost"));
  if (open == false && !secure)
    return Fail(
        Code::kInvalidArgument,
        "network.allowPublicTraffic can only be false for a secured sandbox (secure: true)");
  if (mask && !mask->empty() && !IsHostText(*mask))
    return Fail(Code::kInvalidArgument,
                "network.maskRequestHost must be a host name with an optional port, for example "
                "localhost:${{PORT}}");
  TRY(CheckHttpsPorts(network, shown));
  TRY(CheckDnsServers(network));
  options.allow_public_traffic = open.value_or(true);
  options.mask_request_host = mask.value_or("");
  if (open) shown["allowPublicTraffic"] = *open;
  if (mask) shown["maskRequestHost"] = *mask;
  return {};
}

}  // namespace

Result<NetworkSettings> DecodeNetwork(const json::object& create, bool secure) {
  TRY_ASSIGN(auto internet, TakeBool(create, "allow_internet_access"));
  TRY_ASSIGN(const json::object* network, TakeObject(create, "network"));
  NetworkSettings settings{.allow_internet = internet.value_or(true)};
  if (!network) return settings;
  json::object shown;
  TRY(DecodeIngress(*network, secure, settings.options, shown));
  TRY(DecodeEgress(*network, settings.allow_internet, shown));
  settings.options.as_requested_json = json::serialize(shown);
  return settings;
}

Result<NetworkSettings> DecodeNetworkUpdate(const json::object& update,
                                            const sandbox::NetworkOptions& current) {
  TRY_ASSIGN(auto internet, TakeBool(update, "allow_internet_access"));
  NetworkSettings settings{.allow_internet = internet.value_or(true), .options = current};
  json::object shown, before;
  boost::system::error_code ec;
  json::value stored = json::parse(current.as_requested_json, ec);
  if (!ec && stored.is_object()) before = stored.get_object();
  for (const char* kept : {"allowPublicTraffic", "maskRequestHost", "httpsPorts"})
    if (const json::value* value = before.if_contains(kept)) shown[kept] = *value;
  TRY(DecodeEgress(update, settings.allow_internet, shown));
  settings.options.as_requested_json = json::serialize(shown);
  return settings;
}

}  // namespace caisson::e2b

#include "gateway/target.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace caisson::gateway {
namespace {

constexpr std::string_view kIdHeader = "E2b-Sandbox-Id";
constexpr std::string_view kPortHeader = "E2b-Sandbox-Port";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// SECURITY: ids become DNS labels, keys of maps and parts of pages; nothing else may pass.
bool IsSandboxId(std::string_view id) {
  return !id.empty() && id.size() <= 63 && std::all_of(id.begin(), id.end(), [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z');
  });
}

Target Invalid(std::string message) { return {Target::Kind::kInvalid, "", 0, std::move(message)}; }

Target Sandbox(std::string_view id, std::string_view port_text) {
  auto port = ParseInt<uint16_t>(port_text);
  if (!port || *port == 0)
    return Invalid(fmt::format("Invalid sandbox port: '{}' is not between 1 and 65535",
                               port_text.substr(0, 20)));
  if (!IsSandboxId(id)) return Invalid("Invalid sandbox id: only a-z and 0-9 are allowed");
  return {Target::Kind::kSandbox, std::string(id), *port, ""};
}

bool IsOurDomain(std::string_view rest, std::string_view domain) {
  return rest == domain || rest == "localhost" || rest.ends_with(".localhost");
}

// "3000-iabc[-ignored]" left of our domain. Other labels (api, sandbox, www) are not sandboxes.
std::optional<Target> FromHost(std::string_view host, std::string_view domain) {
  size_t dot = host.find('.');
  if (dot == std::string_view::npos || !IsOurDomain(host.substr(dot + 1), domain)) return {};
  std::string_view label = host.substr(0, dot);
  size_t dash = label.find('-');
  if (dash == 0 || dash == std::string_view::npos ||
      !std::all_of(label.begin(), label.begin() + static_cast<ptrdiff_t>(dash), IsDigit))
    return {};
  std::string_view id = label.substr(dash + 1);
  return Sandbox(id.substr(0, id.find('-')), label.substr(0, dash));
}

std::optional<Target> FromHeaders(const http::Headers& headers) {
  auto id = headers.Get(kIdHeader);
  auto port = headers.Get(kPortHeader);
  if (!id && !port) return {};
  if (!id || !port)
    return Invalid(fmt::format("Header {} without {}: a request into a sandbox needs both",
                               id ? kIdHeader : kPortHeader, id ? kPortHeader : kIdHeader));
  return Sandbox(Trim(*id), Trim(*port));
}

}  // namespace

std::string HostName(std::string_view host_header) {
  std::string_view host = Trim(host_header);
  if (host.starts_with('[')) {
    size_t end = host.find(']');
    return ToLower(end == std::string_view::npos ? host : host.substr(0, end + 1));
  }
  return ToLower(host.substr(0, host.find(':')));
}

Target FindTarget(const http::RequestHead& request, std::string_view domain) {
  std::string host = HostName(request.headers.Value("Host"));
  // "name." is the fully qualified spelling of the same name.
  if (host.ends_with('.')) host.pop_back();
  if (auto target = FromHost(host, HostName(domain))) return *std::move(target);
  if (auto target = FromHeaders(request.headers)) return *std::move(target);
  if (request.Path() == "/files" && request.ParsedQuery().Get("signature"))
    return {Target::Kind::kSignedUrl, "", 0, ""};
  return {};
}

}  // namespace caisson::gateway

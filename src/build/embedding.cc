#include "build/embedding.h"

#include <set>

#include "base/text.h"

namespace caisson::build {
namespace {

struct Origin {
  std::string scheme, host;
  int64_t port = 0;  // 0: it has none, or any
};

int64_t DefaultPort(std::string_view scheme) {
  return scheme == "https" ? 443 : scheme == "http" ? 80 : 0;
}

// "http://host:8000", in lower case. An expression of a policy may lack the scheme.
Origin ParseOrigin(std::string_view text) {
  Origin origin;
  std::string rest = ToLower(text);
  if (size_t end = rest.find("://"); end != rest.npos) {
    origin.scheme = rest.substr(0, end);
    rest.erase(0, end + 3);
  }
  rest = rest.substr(0, rest.find('/'));
  size_t colon = rest.rfind(':');
  if (colon != rest.npos && rest.find(']', colon) == rest.npos) {
    origin.port = rest.substr(colon + 1) == "*"
                      ? -1
                      : ParseInt<uint16_t>(std::string_view(rest).substr(colon + 1)).value_or(0);
    rest.erase(colon);
  }
  origin.host = rest;
  return origin;
}

Origin PageOrigin(std::string_view text) {
  Origin origin = ParseOrigin(text);
  if (origin.port == 0) origin.port = DefaultPort(origin.scheme);
  return origin;
}

bool Same(const Origin& a, const Origin& b) {
  return a.scheme == b.scheme && a.host == b.host && a.port == b.port;
}

// A policy for http means https as well.
bool SchemeMatches(std::string_view wanted, std::string_view scheme) {
  return wanted == scheme || (wanted == "http" && scheme == "https");
}

bool HostMatches(std::string_view wanted, std::string_view host) {
  if (wanted == "*") return true;
  if (!wanted.starts_with("*.")) return wanted == host;
  return host.size() > wanted.size() - 1 && host.ends_with(wanted.substr(1));
}

bool PortMatches(int64_t wanted, const Origin& page) {
  if (wanted == -1 || wanted == page.port) return true;
  int64_t usual = DefaultPort(page.scheme);
  return page.port == usual && (wanted == 0 || (wanted == 80 && usual == 443));
}

// One source expression of CSP 3, §6.7.2.
bool Matches(std::string_view source, const Origin& preview, const Origin& page) {
  if (source == "*")
    return page.scheme == "http" || page.scheme == "https" || page.scheme == preview.scheme;
  if (EqualsIgnoreCase(source, "'self'"))
    return Same(preview, page) ||
           (preview.host == page.host && SchemeMatches(preview.scheme, page.scheme) &&
            preview.port == DefaultPort(preview.scheme) && page.port == DefaultPort(page.scheme));
  if (source.starts_with('\'')) return false;
  if (source.ends_with(':')) {
    source.remove_suffix(1);
    return SchemeMatches(ToLower(source), page.scheme);
  }
  Origin wanted = ParseOrigin(source);
  return SchemeMatches(wanted.scheme.empty() ? preview.scheme : wanted.scheme, page.scheme) &&
         HostMatches(wanted.host, page.host) && PortMatches(wanted.port, page);
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = text.find_first_not_of(" \t"); at != text.npos;
       at = text.find_first_not_of(" \t", at)) {
    size_t end = std::min(text.find_first_of(" \t", at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

struct Policy {
  bool found = false;  // it has frame-ancestors
  bool allows = true;
};

Policy ReadPolicy(std::string_view policy, const Origin& preview, const Origin& page) {
  for (std::string_view directive : Split(policy, ';')) {
    std::vector<std::string_view> words = Words(directive);
    if (words.empty() || !EqualsIgnoreCase(words[0], "frame-ancestors")) continue;
    Policy read{.found = true, .allows = false};
    for (size_t i = 1; i < words.size(); ++i)
      if (Matches(words[i], preview, page)) read.allows = true;
    return read;  // only the first of a policy counts
  }
  return {};
}

// Every policy must allow it.
Policy ReadPolicies(const http::Headers& headers, const Origin& preview, const Origin& page) {
  Policy all;
  for (const auto& [name, value] : headers) {
    if (!EqualsIgnoreCase(name, "Content-Security-Policy")) continue;
    for (std::string_view text : Split(value, ',')) {
      Policy one = ReadPolicy(text, preview, page);
      all.found = all.found || one.found;
      all.allows = all.allows && one.allows;
    }
  }
  return all;
}

// As the HTML standard says (7.6 "The `X-Frame-Options` header"): values that no browser knows are
// as none, different ones forbid.
bool FrameOptionsAllow(const http::Headers& headers, bool same_origin) {
  std::set<std::string> values;
  for (const auto& [name, value] : headers)
    if (EqualsIgnoreCase(name, "X-Frame-Options"))
      for (std::string_view part : Split(value, ',')) values.insert(ToLower(Trim(part)));
  bool known =
      values.contains("deny") || values.contains("allowall") || values.contains("sameorigin");
  if (values.size() > 1) return !known;
  if (values.contains("deny")) return false;
  return !values.contains("sameorigin") || same_origin;
}

}  // namespace

Embedding CheckEmbedding(const http::Headers& headers, const std::string& preview_origin,
                         const std::string& page_origin) {
  Origin preview = PageOrigin(preview_origin), page = PageOrigin(page_origin);
  // With frame-ancestors browsers do not look at the older header.
  Policy policy = ReadPolicies(headers, preview, page);
  if (policy.found) return {policy.allows, policy.allows ? "" : "frame_ancestors"};
  bool allows = FrameOptionsAllow(headers, Same(preview, page));
  return {allows, allows ? "" : "x_frame_options"};
}

}  // namespace caisson::build

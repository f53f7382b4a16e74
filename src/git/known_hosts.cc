#include "git/known_hosts.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::git {
namespace {

// "|1|SALT|HASH": HMAC-SHA1 of the name, so that the file does not tell it.
bool MatchesHash(std::string_view entry, const std::string& name) {
  auto parts = Split(entry, '|');
  if (parts.size() != 4 || parts[1] != "1") return false;
  auto salt = Base64Decode(parts[2]), hash = Base64Decode(parts[3]);
  if (!salt || !hash) return false;
  std::array<unsigned char, EVP_MAX_MD_SIZE> made;
  unsigned size = 0;
  if (!HMAC(EVP_sha1(), salt->data(), static_cast<int>(salt->size()),
            reinterpret_cast<const unsigned char*>(name.data()), name.size(), made.data(), &size))
    return false;
  return *hash == std::string_view(reinterpret_cast<const char*>(made.data()), size);
}

// SSH's patterns know "*" and "?" only; brackets stand for themselves.
bool MatchesPattern(std::string_view pattern, const std::string& name) {
  std::string plain;
  for (char c : ToLower(pattern)) {
    if (c == '[' || c == ']') plain += '\\';
    plain += c;
  }
  return fnmatch(plain.c_str(), name.c_str(), 0) == 0;
}

// "host,*.example.com,!bad.example.com"; one that is denied counts more than all others.
bool MatchesList(std::string_view list, const std::string& name) {
  bool matches = false;
  for (std::string_view pattern : Split(list, ',')) {
    bool denied = pattern.starts_with('!');
    if (denied) pattern.remove_prefix(1);
    if (!MatchesPattern(pattern, name)) continue;
    if (denied) return false;
    matches = true;
  }
  return matches;
}

// The names of a line, behind a marker; "" if it trusts nobody.
std::string_view NamesOf(std::string_view line) {
  line = Trim(line);
  constexpr std::string_view kAuthority = "@cert-authority ";
  if (line.starts_with(kAuthority)) line = Trim(line.substr(kAuthority.size()));
  if (line.starts_with('#') || line.starts_with('@')) return "";
  return line.substr(0, line.find_first_of(" \t"));
}

}  // namespace

bool NamesHost(std::string_view known_hosts, std::string_view host, std::string_view port) {
  std::string name = ToLower(host), with_port = fmt::format("[{}]:{}", name, port);
  auto matches = [](std::string_view names, const std::string& one) {
    return names.starts_with('|') ? MatchesHash(names, one) : MatchesList(names, one);
  };
  auto lines = Split(known_hosts, '\n');
  return std::any_of(lines.begin(), lines.end(), [&](std::string_view line) {
    std::string_view names = NamesOf(line);
    if (names.empty()) return false;
    return matches(names, name) || (port != "22" && matches(names, with_port));
  });
}

}  // namespace caisson::git

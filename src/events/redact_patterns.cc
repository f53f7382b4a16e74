#include "events/redact_patterns.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace caisson::events {
namespace {

constexpr std::string_view kMask = "[redacted]";
constexpr std::string_view kOtherMask = "***";  // of events::Redactor
// Looking further would cost the square of a line that was made for it.
constexpr size_t kMaxName = 100;
constexpr size_t kMaxAddress = 1'000;
constexpr size_t kMaxUntilDigit = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsWordChar(char c) {
  return (c >= 'a' && c <= 'z') || IsUpper(c) || IsDigit(c) || c == '_' || c == '-';
}
bool IsTokenChar(char c) { return IsWordChar(c) || c == '.' || c == '~' || c == '+' || c == '/'; }

bool IsMasked(std::string_view text) {
  return text.starts_with(kMask) || text.starts_with(kOtherMask);
}

// ---- scheme://user:password@host

bool IsDatabase(std::string_view before) {
  constexpr std::array kSchemes = {"postgres", "postgresql", "mysql", "mariadb", "redis",
                                   "rediss",   "mongodb",    "srv",   "amqp",    "amqps"};
  size_t start = before.size();
  while (start > 0 && IsWordChar(before[start - 1])) --start;
  std::string scheme = ToLower(before.substr(start));
  return std::ranges::find(kSchemes, scheme) != kSchemes.end();
}

void CutPasswords(std::string& text) {
  for (size_t at = text.find("://"); at != text.npos; at = text.find("://", at + 3)) {
    std::string_view all(text);
    // In the address of a database a password may hold a slash.
    std::string_view ends = IsDatabase(all.substr(0, at)) ? " \t\n\"'`<>" : " \t\n\"'`<>/?#";
    std::string_view address = all.substr(at + 3, kMaxAddress);
    address = address.substr(0, address.find_first_of(ends));
    size_t host = address.rfind('@');
    if (host == address.npos || address.substr(0, host) == "git") continue;
    size_t colon = address.find(':');
    size_t from = colon < host ? colon + 1 : 0;
    if (from == host || IsMasked(address.substr(from))) continue;
    text.replace(at + 3 + from, host - from, kMask);
  }
}

// ---- NAME=value, "name": "value"

bool IsTelling(std::string_view name) {
  constexpr std::array kEnds = {"apikey",     "accesskey",  "secretkey",  "privatekey", "authkey",
                                "signingkey", "encryptkey", "token",      "secret",     "password",
                                "passwd",     "passphrase", "credential", "credentials"};
  if (name.ends_with("_KEY") || ToLower(name).ends_with("_pwd")) return true;
  std::string plain;
  for (char c : ToLower(name))
    if (c != '_' && c != '-') plain += c;
  return std::ranges::any_of(kEnds, [&](const char* end) { return plain.ends_with(end); });
}

// The name before the sign at `at`; "" if it assigns nothing.
std::string_view NameBefore(std::string_view text, size_t at) {
  size_t end = at;
  while (end > 0 && text[end - 1] == ' ') --end;
  bool quoted = end > 0 && (text[end - 1] == '"' || text[end - 1] == '\'');
  if (quoted) --end;
  // Words of an error ("Unexpected token: x") are not names; those of JSON are in quotes.
  if (text[at] == ':' && !quoted) return "";
  size_t start = end;
  while (start > 0 && IsWordChar(text[start - 1]) && end - start < kMaxName) --start;
  return text.substr(start, end - start);
}

struct Part {
  size_t from = 0, size = 0;
};

// The value that begins at or after `at`, without its quotes.
Part ValueAfter(std::string_view text, size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  if (at == text.size()) return {};
  char quote = text[at];
  bool quoted = quote == '"' || quote == '\'' || quote == '`';
  if (quoted) ++at;
  size_t end = quoted ? text.find(quote, at) : text.find_first_of(" \t\n,;&)]}\"'`", at);
  return {at, std::min(end, text.size()) - at};
}

void CutAssignments(std::string& text) {
  for (size_t at = text.find_first_of("=:"); at != text.npos;
       at = text.find_first_of("=:", at + 1)) {
    // Comparisons and arrows.
    char next = at + 1 < text.size() ? text[at + 1] : ' ';
    if (next == '=' || next == '>' || next == '/') continue;
    if (!IsTelling(NameBefore(text, at))) continue;
    Part value = ValueAfter(text, at + 1);
    if (value.size == 0 || IsMasked(std::string_view(text).substr(value.from))) continue;
    text.replace(value.from, value.size, kMask);
  }
}

// ---- tokens of well-known kinds

struct Kind {
  std::string_view prefix;
  size_t least;        // characters that must follow
  bool digit = false;  // one of them must be a digit, or the word is an ordinary one
  bool upper = false;  // only upper case and digits
};
constexpr std::array kKinds = {
    Kind{"sk-", 8, true},     Kind{"sk_live_", 8},      Kind{"sk_test_", 8},
    Kind{"pk_live_", 8},      Kind{"pk_test_", 8},      Kind{"rk_live_", 8},
    Kind{"rk_test_", 8},      Kind{"whsec_", 8},        Kind{"ghp_", 16},
    Kind{"gho_", 16},         Kind{"ghu_", 16},         Kind{"ghs_", 16},
    Kind{"ghr_", 16},         Kind{"github_pat_", 16},  Kind{"glpat-", 16},
    Kind{"xoxb-", 10},        Kind{"xoxp-", 10},        Kind{"npm_", 30},
    Kind{"hf_", 30},          Kind{"AIza", 30},         Kind{"AKIA", 16, false, true},
    Kind{"eyJ", 30},          Kind{"e2b_", 30},         Kind{"ASIA", 16, false, true},
    Kind{"Bearer ", 8, true}, Kind{"bearer ", 8, true}, Kind{"Basic ", 8, true},
};

// How long the token at the start of `text` is; 0 if there is none.
size_t TokenAt(std::string_view text) {
  for (const Kind& kind : kKinds) {
    if (!text.starts_with(kind.prefix)) continue;
    size_t end = kind.prefix.size();
    bool digit = !kind.digit;
    for (; end < text.size() && (digit || end < kMaxUntilDigit); ++end) {
      char c = text[end];
      if (kind.upper ? !IsUpper(c) && !IsDigit(c) : !IsTokenChar(c)) break;
      digit = digit || IsDigit(c);
    }
    if (end - kind.prefix.size() >= kind.least && digit) return end;
  }
  return 0;
}

std::string CutTokens(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    // A token begins where a word does.
    bool inside = at > 0 && IsWordChar(text[at - 1]);
    size_t token = inside ? 0 : TokenAt(text.substr(at));
    if (token > 0)
      clean += kMask;
    else
      clean += text[at];
    at += std::max<size_t>(token, 1);
  }
  return clean;
}

}  // namespace

std::string RedactPatterns(std::string text) {
  CutPasswords(text);
  CutAssignments(text);
  return CutTokens(text);
}

bool HoldsToken(const std::string& text) {
  std::string clean = text;
  CutPasswords(clean);
  return CutTokens(clean) != text;
}

}  // namespace caisson::events

#include "events/redactor.h"

#include <algorithm>
#include <array>

#include "base/encoding.h"

namespace caisson::events {
namespace {

constexpr size_t kShortest = 8;
constexpr std::string_view kMask = "***";

// A token of a well-known kind: its first characters, and how many of its alphabet must follow.
struct Kind {
  std::string_view prefix;
  size_t least;
  bool hex = false;
};
constexpr std::array kKinds = {
    Kind{"ghp_", 20},   Kind{"gho_", 20},        Kind{"ghu_", 20}, Kind{"ghs_", 20},
    Kind{"ghr_", 20},   Kind{"github_pat_", 20}, Kind{"sk-", 20},  Kind{"e2b_", 40, true},
    Kind{"glpat-", 20}, Kind{"xoxb-", 20},       Kind{"eyJ", 40},  // a JWT
    Kind{"AKIA", 16},
};

bool IsTokenChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}
bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// How long the token at the start of `text` is; 0 if there is none.
size_t TokenAt(std::string_view text) {
  for (const Kind& kind : kKinds) {
    if (!text.starts_with(kind.prefix)) continue;
    size_t end = kind.prefix.size();
    while (end < text.size() && (kind.hex ? IsHex(text[end]) : IsTokenChar(text[end]))) ++end;
    if (end - kind.prefix.size() >= kind.least) return end;
  }
  return 0;
}

// "scheme://user:password@host": the password; a user alone may be a token, too.
void CutUrlPasswords(std::string& text) {
  for (size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    size_t end = text.find_first_of("/ \t\r\n\"'<>", at + 3);
    std::string_view authority = std::string_view(text).substr(
        at + 3, end == std::string::npos ? std::string::npos : end - at - 3);
    size_t host = authority.rfind('@');
    if (host == std::string_view::npos || authority.substr(0, host) == "git") continue;
    size_t colon = authority.find(':');
    size_t from = colon < host ? colon + 1 : 0;
    if (host > from) text.replace(at + 3 + from, host - from, kMask);
  }
}

void CutAll(std::string& text, std::string_view secret) {
  for (size_t at = text.find(secret); at != std::string::npos;
       at = text.find(secret, at + kMask.size()))
    text.replace(at, secret.size(), kMask);
}

}  // namespace

void Redactor::Add(std::string secret) {
  if (secret.size() < kShortest) return;
  // As it stands in a Basic header: base64 of "user:secret" begins at one of three offsets of the
  // secret, so the parts that do not depend on what is around it are looked for.
  for (size_t skip = 0; skip < 3; ++skip) {
    std::string_view rest = std::string_view(secret).substr(skip);
    std::string encoded = Base64Encode(rest.substr(0, rest.size() / 3 * 3));
    if (encoded.size() >= 2 * kShortest) secrets_.push_back(std::move(encoded));
  }
  if (std::string encoded = PercentEncode(secret); encoded != secret)
    secrets_.push_back(std::move(encoded));
  secrets_.push_back(std::move(secret));
  // Longer ones first: one may be part of another.
  std::sort(secrets_.begin(), secrets_.end(),
            [](const auto& a, const auto& b) { return a.size() > b.size(); });
  secrets_.erase(std::unique(secrets_.begin(), secrets_.end()), secrets_.end());
}

std::string Redactor::Redact(std::string_view text) const {
  std::string cut(text);
  for (const std::string& secret : secrets_) CutAll(cut, secret);
  CutUrlPasswords(cut);
  std::string clean;
  clean.reserve(cut.size());
  for (size_t at = 0; at < cut.size();) {
    // A token begins where a word does.
    bool inside = at > 0 && IsTokenChar(cut[at - 1]);
    size_t token = inside ? 0 : TokenAt(std::string_view(cut).substr(at));
    if (token > 0) {
      clean += kMask;
      at += token;
    } else {
      clean += cut[at++];
    }
  }
  return clean;
}

}  // namespace caisson::events

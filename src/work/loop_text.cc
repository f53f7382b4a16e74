#include "work/loop_text.h"

#include <algorithm>
#include <vector>

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::work {
namespace {

constexpr size_t kMaxTokens = 1'000;
constexpr size_t kHalf = kMaxTokens / 2 * kBytesPerToken;
constexpr size_t kHashChars = 12;

bool IsInside(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Removes "." and ".."; nothing if it leads above the root.
std::optional<std::string> Normalize(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::string_view part : Split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else {
      if (parts.empty()) return std::nullopt;
      parts.pop_back();
    }
  }
  std::string normal;
  for (std::string_view part : parts) normal += "/" + std::string(part);
  return normal.empty() ? "/" : normal;
}

bool IsBelow(std::string_view path, std::string_view folder) {
  return path == folder || folder == "/" ||
         (path.starts_with(folder) && path[folder.size()] == '/');
}

// The sets of places in `pattern` that the text so far may have reached.
class GlobWalk {
 public:
  explicit GlobWalk(std::string_view pattern) : pattern_(pattern), at_(pattern.size() + 1) {
    Reach(at_, 0);
  }
  void Step(char c) {
    std::vector<bool> next(pattern_.size() + 1);
    for (size_t i = 0; i < pattern_.size(); ++i) {
      if (!at_[i]) continue;
      bool deep = IsDeep(i);
      if (pattern_[i] == '*') {
        if (deep || c != '/') Reach(next, i);
      } else if (pattern_[i] == c || (pattern_[i] == '?' && c != '/')) {
        Reach(next, i + 1);
      }
    }
    at_ = std::move(next);
  }
  bool Ended() const { return at_[pattern_.size()]; }

 private:
  bool IsDeep(size_t i) const { return pattern_.substr(i, 2) == "**"; }
  // A star may stand for nothing, and "**/" for no folder at all.
  void Reach(std::vector<bool>& places, size_t i) const {
    if (places[i]) return;
    places[i] = true;
    if (i >= pattern_.size() || pattern_[i] != '*') return;
    size_t after = i + (IsDeep(i) ? 2 : 1);
    Reach(places, after);
    if (IsDeep(i) && after < pattern_.size() && pattern_[after] == '/') Reach(places, after + 1);
  }

  std::string_view pattern_;
  std::vector<bool> at_;
};

}  // namespace

std::string CutResult(std::string_view text) {
  if (text.size() <= kMaxTokens * kBytesPerToken) return std::string(text);
  size_t first = kHalf, last = text.size() - kHalf;
  while (first > 0 && IsInside(text[first])) --first;
  while (last < text.size() && IsInside(text[last])) ++last;
  auto omitted = std::ranges::count(text.substr(first, last - first), '\n') + 1;
  return fmt::format("{}\n[{} lines omitted]\n{}", text.substr(0, first), omitted,
                     text.substr(last));
}

std::string ShortHash(std::string_view text) {
  return HexEncode(Sha256(text)).substr(0, kHashChars);
}

std::string ErrorSignature(std::string_view type, std::string_view message) {
  std::string plain;
  for (char c : Trim(message)) {
    bool digit = c >= '0' && c <= '9';
    if (!digit)
      plain += c;
    else if (plain.empty() || plain.back() != '#')
      plain += '#';
  }
  return fmt::format("{}:{}", type, ShortHash(plain));
}

Result<std::string> ToolPath(std::string_view workdir, std::string_view path) {
  if (path.empty()) return Fail(Code::kInvalidArgument, "the path is empty");
  if (path.find('\0') != path.npos || ToUtf8(path) != path)
    return Fail(Code::kInvalidArgument, "the path has characters that no path has");
  auto normal = Normalize(path[0] == '/' ? std::string(path)
                                         : std::string(workdir) + "/" + std::string(path));
  if (!normal || (!IsBelow(*normal, workdir) && !IsBelow(*normal, "/tmp")))
    return Fail(Code::kInvalidArgument, "'{}' is neither in {} nor in /tmp", path, workdir);
  return *normal;
}

bool MatchesGlob(std::string_view pattern, std::string_view path) {
  if (pattern.find('/') == pattern.npos) path = path.substr(path.rfind('/') + 1);
  GlobWalk walk(pattern);
  for (char c : path) walk.Step(c);
  return walk.Ended();
}

}  // namespace caisson::work

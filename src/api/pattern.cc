#include "api/pattern.h"

#include "base/text.h"

namespace caisson::api {
namespace {

constexpr size_t kMany = 1 << 20;

// Takes what stands between [ and ]; false if there is no end.
bool TakeClass(std::string_view& text, std::string& characters, bool& negated) {
  size_t end = text.find(']');
  if (end == std::string_view::npos) return false;
  std::string_view inside = text.substr(0, end);
  text.remove_prefix(end + 1);
  negated = inside.starts_with('^');
  if (negated) inside.remove_prefix(1);
  for (size_t i = 0; i < inside.size(); ++i) {
    if (i + 2 < inside.size() && inside[i + 1] == '-') {
      for (char c = inside[i]; c <= inside[i + 2] && c > 0; ++c) characters += c;
      i += 2;
    } else {
      characters += inside[i];
    }
  }
  return !characters.empty();
}

bool TakeCounts(std::string_view& text, size_t& min, size_t& max) {
  if (text.empty()) return true;
  char sign = text.front();
  if (sign == '?' || sign == '*' || sign == '+') {
    min = sign == '+' ? 1 : 0;
    max = sign == '?' ? 1 : kMany;
    text.remove_prefix(1);
  } else if (sign == '{') {
    size_t end = text.find('}');
    if (end == std::string_view::npos) return false;
    auto parts = Split(text.substr(1, end - 1), ',');
    auto low = ParseInt<size_t>(parts[0]);
    if (!low || parts.size() > 2) return false;
    auto high = parts.size() == 1 ? low : parts[1].empty() ? kMany : ParseInt<size_t>(parts[1]);
    if (!high) return false;
    min = *low;
    max = *high;
    text.remove_prefix(end + 1);
  }
  return true;
}

}  // namespace

std::optional<Pattern> Pattern::Parse(std::string_view text) {
  if (text.size() < 2 || text.front() != '^' || text.back() != '$') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  Pattern pattern;
  while (!text.empty()) {
    Piece piece;
    char first = text.front();
    text.remove_prefix(1);
    if (first == '[') {
      if (!TakeClass(text, piece.characters, piece.negated)) return std::nullopt;
    } else if (std::string_view("()|.?*+{}^$").find(first) != std::string_view::npos) {
      return std::nullopt;
    } else if (first == '\\') {
      if (text.empty() || isalnum(static_cast<unsigned char>(text.front()))) return std::nullopt;
      piece.characters = text.front();
      text.remove_prefix(1);
    } else {
      piece.characters = first;
    }
    if (!TakeCounts(text, piece.min, piece.max)) return std::nullopt;
    pattern.pieces_.push_back(std::move(piece));
  }
  return pattern;
}

bool Pattern::MatchesFrom(size_t at, std::string_view text) const {
  if (at == pieces_.size()) return text.empty();
  const Piece& piece = pieces_[at];
  size_t most = 0;
  while (most < text.size() && most < piece.max && piece.Has(text[most])) ++most;
  for (size_t count = most + 1; count-- > piece.min;)
    if (MatchesFrom(at + 1, text.substr(count))) return true;
  return false;
}

}  // namespace caisson::api

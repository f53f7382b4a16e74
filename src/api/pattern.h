// The few regular expressions that schemas need, matched without surprises: a row of characters or
// [classes], each with an optional ?, *, +, {n}, {n,} or {m,n}. Anchored at both ends.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::api {

class Pattern {
 public:
  // Nothing if `text` is not such an expression. It must begin with ^ and end with $.
  static std::optional<Pattern> Parse(std::string_view text);
  // Bytes, not characters: classes are ASCII.
  bool Matches(std::string_view text) const { return MatchesFrom(0, text); }

 private:
  struct Piece {
    std::string characters;
    bool negated = false;
    size_t min = 1, max = 1;
    bool Has(char c) const { return (characters.find(c) != std::string::npos) != negated; }
  };
  bool MatchesFrom(size_t piece, std::string_view text) const;

  std::vector<Piece> pieces_;
};

}  // namespace caisson::api

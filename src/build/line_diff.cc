#include "build/line_diff.h"

#include <algorithm>
#include <map>
#include <optional>

namespace caisson::build {
namespace {

using Lines = std::vector<std::string_view>;

// More differences than this are no longer worth a search: it takes memory by their square.
constexpr int kMaxEdits = 1'000;

// Lines as numbers: equal ones have the same.
class Names {
 public:
  std::vector<int> Of(const Lines& lines) {
    std::vector<int> names;
    names.reserve(lines.size());
    for (std::string_view line : lines)
      names.push_back(known_.try_emplace(line, static_cast<int>(known_.size())).first->second);
    return names;
  }

 private:
  std::map<std::string_view, int> known_;
};

// Myers' greedy search ("An O(ND) difference algorithm", 1986). On diagonal k, which is x - y, the
// furthest x that d edits reach is kept for each d, so that the way can be walked back.
class Search {
 public:
  Search(const std::vector<int>& a, const std::vector<int>& b, int64_t& budget)
      : a_(a), b_(b), budget_(budget) {}

  // The kinds of the edits in order; nothing if the budget is used up.
  std::optional<std::vector<char>> Run() {
    int n = static_cast<int>(a_.size()), m = static_cast<int>(b_.size());
    int most = std::min(n + m, kMaxEdits);
    for (int d = 0; d <= most; ++d) {
      reached_.emplace_back(2 * d + 1, 0);
      for (int k = -d; k <= d; k += 2) {
        int x = Slide(From(d, k), k);
        if (budget_ <= 0) return std::nullopt;
        At(d, k) = x;
        if (x >= n && x - k >= m) return WalkBack(d, k);
      }
    }
    return std::nullopt;
  }

 private:
  int& At(int d, int k) { return reached_[static_cast<size_t>(d)][static_cast<size_t>(k + d)]; }
  // Whether the last of d edits on diagonal k adds a line (or deletes one).
  bool Adds(int d, int k) { return k == -d || (k != d && At(d - 1, k - 1) < At(d - 1, k + 1)); }
  int From(int d, int k) {
    if (d == 0) return 0;
    return Adds(d, k) ? At(d - 1, k + 1) : At(d - 1, k - 1) + 1;
  }
  int Slide(int x, int k) {
    --budget_;
    int y = x - k, n = static_cast<int>(a_.size()), m = static_cast<int>(b_.size());
    while (x < n && y < m && y >= 0 && a_[static_cast<size_t>(x)] == b_[static_cast<size_t>(y)]) {
      ++x, ++y;
      --budget_;
    }
    return x;
  }
  std::vector<char> WalkBack(int d, int k) {
    std::vector<char> kinds;
    for (; d >= 0; --d) {
      int x = At(d, k), start = From(d, k);
      kinds.insert(kinds.end(), static_cast<size_t>(x - start), ' ');
      if (d == 0) break;
      bool adds = Adds(d, k);
      kinds.push_back(adds ? '+' : '-');
      k += adds ? 1 : -1;
    }
    std::ranges::reverse(kinds);
    return kinds;
  }

  const std::vector<int>& a_;
  const std::vector<int>& b_;
  int64_t& budget_;
  std::vector<std::vector<int>> reached_;
};

size_t CommonStart(const Lines& a, const Lines& b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}
size_t CommonEnd(const Lines& a, const Lines& b, size_t start) {
  size_t most = std::min(a.size(), b.size()) - start, count = 0;
  while (count < most && a[a.size() - 1 - count] == b[b.size() - 1 - count]) ++count;
  return count;
}

// What is between the common start and end.
std::vector<char> Middle(const Lines& a, const Lines& b, int64_t& budget) {
  if (!a.empty() && !b.empty()) {
    Names names;
    std::vector<int> before = names.Of(a), after = names.Of(b);
    if (auto kinds = Search(before, after, budget).Run()) return *kinds;
  }
  std::vector<char> kinds(a.size(), '-');
  kinds.insert(kinds.end(), b.size(), '+');
  return kinds;
}

}  // namespace

std::vector<std::string_view> SplitLines(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::vector<LineEdit> DiffLines(std::string_view before, std::string_view after, int64_t& budget) {
  Lines a = SplitLines(before), b = SplitLines(after);
  size_t start = CommonStart(a, b), end = CommonEnd(a, b, start);
  Lines a_middle(a.begin() + static_cast<ptrdiff_t>(start), a.end() - static_cast<ptrdiff_t>(end));
  Lines b_middle(b.begin() + static_cast<ptrdiff_t>(start), b.end() - static_cast<ptrdiff_t>(end));
  std::vector<char> kinds(start, ' ');
  std::vector<char> middle = Middle(a_middle, b_middle, budget);
  kinds.insert(kinds.end(), middle.begin(), middle.end());
  kinds.insert(kinds.end(), end, ' ');
  std::vector<LineEdit> edits;
  edits.reserve(kinds.size());
  size_t x = 0, y = 0;
  for (char kind : kinds) {
    edits.push_back({kind, kind == '+' ? b[y] : a[x]});
    if (kind != '+') ++x;
    if (kind != '-') ++y;
  }
  return edits;
}

}  // namespace caisson::build

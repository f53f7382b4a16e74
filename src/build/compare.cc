#include <set>

#include "base/text.h"
#include "build/file_change.h"
#include "build/line_diff.h"

namespace caisson::build {
namespace {

constexpr size_t kContext = 3;
constexpr size_t kMaxPatch = 64 << 10;
constexpr size_t kMaxPatches = 4 << 20;
constexpr int64_t kMaxSteps = 20'000'000;  // a tenth of a second or so
constexpr std::string_view kCut = "\\ The rest is not shown.\n";

// The lines [from, to) of the edits, which stand at `a` before and `b` after.
struct Hunk {
  size_t from = 0, to = 0;
  size_t a = 0, b = 0;
};

// The parts with differences and what is around them. Two that touch are one.
std::vector<Hunk> FindHunks(const std::vector<LineEdit>& edits) {
  std::vector<Hunk> hunks;
  size_t a = 0, b = 0;
  for (size_t i = 0; i < edits.size(); ++i) {
    if (edits[i].kind != ' ') {
      if (hunks.empty() || i > hunks.back().to + kContext) {
        size_t back = std::min(i, kContext);
        hunks.push_back({i - back, i, a - back, b - back});
      }
      hunks.back().to = std::min(i + 1 + kContext, edits.size());
    }
    if (edits[i].kind != '+') ++a;
    if (edits[i].kind != '-') ++b;
  }
  return hunks;
}

std::string Range(size_t start, size_t count) {
  // By tradition an empty range names the line before it.
  size_t line = count == 0 ? start : start + 1;
  return count == 1 ? fmt::format("{}", line) : fmt::format("{},{}", line, count);
}

std::string HunkHead(const std::vector<LineEdit>& edits, const Hunk& hunk) {
  size_t before = 0, after = 0;
  for (size_t i = hunk.from; i < hunk.to; ++i) {
    if (edits[i].kind != '+') ++before;
    if (edits[i].kind != '-') ++after;
  }
  return fmt::format("@@ -{} +{} @@\n", Range(hunk.a, before), Range(hunk.b, after));
}

void AddLine(std::string& patch, const LineEdit& edit) {
  patch += edit.kind;
  patch += edit.line;
  if (!edit.line.ends_with('\n')) patch += "\n\\ No newline at end of file\n";
}

std::string MakePatch(const FileDifference& file, const std::vector<LineEdit>& edits, size_t max) {
  std::string patch =
      fmt::format("--- {}\n+++ {}\n", file.change == "added" ? "/dev/null" : "a/" + file.path,
                  file.change == "deleted" ? "/dev/null" : "b/" + file.path);
  for (const Hunk& hunk : FindHunks(edits)) {
    patch += HunkHead(edits, hunk);
    for (size_t i = hunk.from; i < hunk.to; ++i) {
      if (patch.size() + edits[i].line.size() > max) return patch + std::string(kCut);
      AddLine(patch, edits[i]);
    }
  }
  return patch;
}

// What all files of a comparison may cost together.
struct Allowance {
  int64_t steps = kMaxSteps;
  size_t bytes = kMaxPatches;
};

void CompareLines(FileDifference& file, std::string_view before, std::string_view after,
                  Allowance& left) {
  if (!IsText(before) || !IsText(after)) return;
  std::vector<LineEdit> edits = DiffLines(before, after, left.steps);
  for (const LineEdit& edit : edits) {
    if (edit.kind == '+') ++file.additions;
    if (edit.kind == '-') ++file.deletions;
  }
  if (left.bytes == 0) return;
  file.patch = MakePatch(file, edits, std::min(left.bytes, kMaxPatch));
  left.bytes -= std::min(left.bytes, file.patch.size());
}

}  // namespace

std::vector<FileDifference> Compare(const Files& before, const Files& after) {
  std::set<std::string_view> paths;
  for (const auto& [path, content] : before) paths.insert(path);
  for (const auto& [path, content] : after) paths.insert(path);
  std::vector<FileDifference> differences;
  Allowance left;
  for (std::string_view path : paths) {
    auto old_file = before.find(std::string(path)), new_file = after.find(std::string(path));
    bool was = old_file != before.end(), is = new_file != after.end();
    if (was && is && old_file->second == new_file->second) continue;
    FileDifference file{.path = std::string(path),
                        .change = !was  ? "added"
                                  : !is ? "deleted"
                                        : "modified"};
    CompareLines(file, was ? old_file->second : "", is ? new_file->second : "", left);
    differences.push_back(std::move(file));
  }
  return differences;
}

}  // namespace caisson::build

#include "git/porcelain.h"

#include <algorithm>
#include <map>

#include "base/text.h"

namespace caisson::git {
namespace {

// What stands behind the n-th space of an entry: its path, which may hold spaces itself.
std::string_view Behind(std::string_view entry, int spaces) {
  size_t at = 0;
  for (int i = 0; i < spaces; ++i) {
    at = entry.find(' ', at);
    if (at == std::string_view::npos) return {};
    ++at;
  }
  return entry.substr(at);
}

// The next piece up to a zero byte.
std::string_view Next(std::string_view& rest) {
  size_t end = rest.find('\0');
  std::string_view piece = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return piece;
}

void ParseHeader(std::string_view line, StatusResult& status) {
  auto value = [&line](std::string_view key) -> std::string_view {
    return line.starts_with(key) ? line.substr(key.size()) : std::string_view();
  };
  if (auto oid = value("# branch.oid "); !oid.empty() && oid != "(initial)") status.head_sha = oid;
  if (auto head = value("# branch.head "); !head.empty() && head != "(detached)")
    status.branch = ToUtf8(head);
  if (auto ab = value("# branch.ab "); !ab.empty()) {
    size_t space = ab.find(" -");
    if (space == std::string_view::npos || !ab.starts_with('+')) return;
    status.ahead = ParseInt<int>(ab.substr(1, space - 1)).value_or(0);
    status.behind = ParseInt<int>(ab.substr(space + 2)).value_or(0);
  }
}

// -1 for what is no percentage.
int Percent(std::string_view text) {
  int percent = ParseInt<int>(Trim(text)).value_or(-1);
  return percent <= 100 ? std::max(percent, -1) : -1;
}

}  // namespace

StatusResult ParseStatus(std::string_view output) {
  StatusResult status;
  while (!output.empty()) {
    std::string_view entry = Next(output);
    if (entry.size() < 3) continue;
    char kind = entry.front();
    if (kind == '#') ParseHeader(entry, status);
    if (kind == '?') status.untracked.push_back(ToUtf8(entry.substr(2)));
    if (kind == 'u') status.conflicted.push_back(ToUtf8(Behind(entry, 10)));
    if (kind != '1' && kind != '2') continue;
    std::string path = ToUtf8(Behind(entry, kind == '1' ? 8 : 9));
    if (kind == '2') Next(output);  // where it was
    if (entry[2] != '.') status.staged.push_back(path);
    if (entry.size() > 3 && entry[3] != '.') status.modified.push_back(path);
  }
  return status;
}

std::vector<DiffFile> ParseNumstat(std::string_view output) {
  std::vector<DiffFile> files;
  while (!output.empty()) {
    auto columns = Split(Next(output), '\t');
    if (columns.size() < 3) continue;
    DiffFile file;
    file.binary = columns[0] == "-";
    file.added = ParseInt<int64_t>(columns[0]).value_or(0);
    file.removed = ParseInt<int64_t>(columns[1]).value_or(0);
    // A name may hold tabs; an empty one announces the two names of a rename.
    size_t head = columns[0].size() + columns[1].size() + 2;
    std::string_view whole(
        columns[0].data(),
        static_cast<size_t>(columns.back().data() - columns[0].data()) + columns.back().size());
    std::string_view path = whole.substr(head);
    if (path.empty()) {
      file.old_path = ToUtf8(Next(output));
      path = Next(output);
    }
    file.path = ToUtf8(path);
    files.push_back(std::move(file));
  }
  return files;
}

void SetChanges(std::vector<DiffFile>& files, std::string_view output) {
  std::map<std::string, std::string, std::less<>> changes;
  while (!output.empty()) {
    std::string_view letter = Next(output).substr(0, 1);
    bool moved = letter == "R" || letter == "C";
    if (moved) Next(output);  // where it was
    changes[ToUtf8(Next(output))] = letter == "A" || letter == "C" ? "added"
                                    : letter == "D"                ? "deleted"
                                    : letter == "R"                ? "renamed"
                                                                   : "modified";
  }
  for (DiffFile& file : files) {
    auto found = changes.find(file.path);
    file.change = found == changes.end() ? "modified" : found->second;
  }
}

std::vector<CommitInfo> ParseLog(std::string_view output) {
  std::vector<CommitInfo> commits;
  while (!output.empty()) {
    CommitInfo commit;
    commit.sha = Next(output);
    commit.author = ToUtf8(Next(output));
    commit.email = ToUtf8(Next(output));
    commit.date = Next(output);
    commit.message = ToUtf8(Trim(Next(output)));
    if (!commit.sha.empty()) commits.push_back(std::move(commit));
  }
  return commits;
}

std::vector<std::string> ParseNames(std::string_view output) {
  std::vector<std::string> names;
  while (!output.empty()) names.push_back(ToUtf8(Next(output)));
  return names;
}

std::vector<Progress> ProgressParser::Feed(std::string_view piece) {
  constexpr size_t kMaxLine = 1000;
  std::vector<Progress> steps;
  for (char c : piece) {
    if (c != '\r' && c != '\n') {
      if (line_.size() < kMaxLine) line_ += c;
      continue;
    }
    std::string line = std::exchange(line_, "");
    std::string_view text = Trim(line);
    if (text.starts_with("remote: ")) text.remove_prefix(8);
    if (text.empty()) continue;
    Progress step;
    size_t colon = text.find(": ");
    size_t mark = text.find('%');
    if (colon != text.npos && mark != text.npos && mark > colon)
      step.percent = Percent(text.substr(colon + 2, mark - colon - 2));
    step.text = ToUtf8(step.percent >= 0 ? text.substr(0, colon) : text);
    if (step.text == last_text_ && step.percent == last_percent_) continue;
    last_text_ = step.text;
    last_percent_ = step.percent;
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace caisson::git

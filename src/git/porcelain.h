// What git prints for programs, as values. Pure functions: the bytes come from a sandbox.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::git {

struct StatusResult {
  std::string branch;  // "" when HEAD is no branch
  std::string head_sha;
  int ahead = 0, behind = 0;
  std::vector<std::string> staged, modified, untracked, conflicted;
  bool clean() const {
    return staged.empty() && modified.empty() && untracked.empty() && conflicted.empty();
  }
};
struct DiffFile {
  std::string path;
  std::string old_path;  // of a renamed one
  int64_t added = 0, removed = 0;
  bool binary = false;
  std::string change = {};  // "added", "modified", "deleted", "renamed" where that was asked for
};
struct CommitInfo {
  std::string sha, message, author, email, date;
};
// `percent` is -1 when git does not tell.
struct Progress {
  std::string operation;
  std::string text;
  int percent = -1;
};

// `git status --porcelain=v2 --branch -z`.
StatusResult ParseStatus(std::string_view output);
// `git diff --numstat -z`.
std::vector<DiffFile> ParseNumstat(std::string_view output);
// Sets what became of each file, by `git diff --name-status -z` of the same diff.
void SetChanges(std::vector<DiffFile>& files, std::string_view output);
// `git log -z` with kLogFormat.
inline constexpr std::string_view kLogFormat = "%H%x00%an%x00%ae%x00%aI%x00%B";
std::vector<CommitInfo> ParseLog(std::string_view output);
// Names that are ended by zero bytes.
std::vector<std::string> ParseNames(std::string_view output);

// Cuts git's progress, which comes in any pieces, into steps: a new phase or a new percentage.
class ProgressParser {
 public:
  std::vector<Progress> Feed(std::string_view piece);

 private:
  std::string line_;
  std::string last_text_;
  int last_percent_ = -1;
};

}  // namespace caisson::git

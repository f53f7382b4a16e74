// What a runner wants to be different in the files of a project.
#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"

namespace caisson::build {

// Path -> content, of one version. Paths are relative, with "/" between their parts.
using Files = std::map<std::string, std::string>;

struct FileChange {
  std::string path;
  std::optional<std::string> new_content;  // nothing: the file is deleted
};

// {"path", "new_content"}, {"path", "new_content_base64"} for what is no text, or {"path",
// "delete": true}, which "change_type": "delete" means as well. An object with `content` in place
// of `new_content` is an error that says so, never an empty file.
Result<FileChange> ParseFileChange(const boost::json::value& value);
// A list of them, or an object of path -> content (or -> a change).
Result<std::vector<FileChange>> ParseFileChanges(const boost::json::value& value);
// Whether it can stand in a JSON text as it is; pictures and the like cannot.
bool IsText(std::string_view content);
// SECURITY: empty, absolute and escaping paths, "." and ".." parts, control characters, ".git" and
// over-long names are kInvalidArgument.
Status CheckPath(std::string_view path);
// What is wrong with a version as a whole: too many files or bytes (the build_max_ settings), a
// file that is also a directory, JavaScript without package.json.
Status CheckFiles(const Files& files, const Config& config);
// The previous files with the changes applied. Deleting what is not there is fine.
Result<Files> Apply(Files files, const std::vector<FileChange>& changes);

// "1 file", "2 files".
inline std::string Counted(size_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

struct FileDifference {
  std::string path;
  std::string change;  // "added", "modified", "deleted"
  int64_t additions = 0, deletions = 0;
  // Unified; its last line says if it was cut. "" of what is not text, and of what comes after very
  // many others.
  std::string patch;
};
// By path. Its cost is bounded: large files are told as wholly different.
std::vector<FileDifference> Compare(const Files& before, const Files& after);

}  // namespace caisson::build

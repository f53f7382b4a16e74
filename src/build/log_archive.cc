#include "build/log_archive.h"

#include <unistd.h>

#include <boost/json.hpp>
#include <deque>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "build/screenshots.h"
#include "work/json_fields.h"

namespace caisson::build {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using store::BuildLogRow;

std::string FileOf(const std::string& directory, const std::string& build_id) {
  return directory + "/" + build_id + ".ndjson";
}

std::string Encode(const BuildLogRow& row) {
  json::object line{{"id", row.line},
                    {"ts", FormatTime(row.at)},
                    {"source", row.source},
                    {"phase", row.phase},
                    {"text", row.text}};
  if (!row.raw.empty()) line["raw"] = row.raw;
  return json::serialize(line) + '\n';
}

Result<BuildLogRow> Decode(const std::string& build_id, const std::string& text) {
  json::object line = work::ParseObject(text);
  auto at = ParseTime(work::TextOf(line, "ts"));
  if (!line.contains("id") || !at)
    return Fail(Code::kDataLoss, "a line of the archived log of the build {} is broken", build_id);
  return BuildLogRow{.build_id = build_id,
                     .line = work::IntOf(line, "id"),
                     .at = *at,
                     .source = work::TextOf(line, "source"),
                     .phase = work::TextOf(line, "phase"),
                     .text = work::TextOf(line, "text"),
                     .raw = work::TextOf(line, "raw")};
}

}  // namespace

std::string LogArchiveOf(const Config& config) {
  std::string directory = config.build_log_archive;
  if (directory.empty() || directory.starts_with('/')) return directory;
  return WritableDirectory(config) + "/" + directory;
}

Status CheckLogArchive(const Config& config) {
  if (config.build_log_archive.empty()) return {};
  if (WritableDirectory(config).empty())
    return Fail(
        Code::kInvalidArgument,
        "build_log_archive = '{}' cannot work: logs are archived beside an SQLite database, "
        "and this server has none; archive them elsewhere, or leave it empty",
        config.build_log_archive);
  std::string directory = LogArchiveOf(config);
  std::error_code ec;
  fs::create_directories(directory, ec);
  if (access(directory.c_str(), W_OK | X_OK) != 0)
    return Fail(Code::kInvalidArgument,
                "build_log_archive = '{}' cannot work: {}; a plain name is a directory beside the "
                "SQLite database, the only place where this server can write",
                config.build_log_archive, ec ? ec.message() : "it is not writable");
  return {};
}

Status ArchiveLog(const std::string& directory, const std::string& build_id,
                  const std::vector<BuildLogRow>& lines) {
  std::error_code ec;
  fs::create_directories(directory, ec);
  std::string text;
  for (const BuildLogRow& row : lines) text += Encode(row);
  if (Status written = WriteFileAtomic(FileOf(directory, build_id), text, 0600); !written)
    return Fail(Code::kUnavailable, "the log archive cannot be written: {}",
                written.error().message());
  return {};
}

void RemoveArchivedLog(const std::string& directory, const std::string& build_id) {
  std::error_code ec;
  if (!directory.empty()) fs::remove(FileOf(directory, build_id), ec);
}

Result<std::vector<BuildLogRow>> ArchivedLines(const std::string& directory,
                                               const std::string& build_id, int64_t from,
                                               int64_t before, int64_t limit, bool newest) {
  std::vector<BuildLogRow> lines;
  if (directory.empty()) return lines;
  std::ifstream file(FileOf(directory, build_id));
  // A log has no holes: the number of a line is its place. Only what is shown is parsed.
  std::deque<std::string> wanted;
  std::string text;
  for (int64_t number = 0; number < before && std::getline(file, text); ++number) {
    if (number < from) continue;
    if (!newest && static_cast<int64_t>(wanted.size()) == limit) break;
    wanted.push_back(std::move(text));
    if (static_cast<int64_t>(wanted.size()) > limit) wanted.pop_front();
  }
  for (const std::string& one : wanted) {
    TRY_ASSIGN(BuildLogRow row, Decode(build_id, one));
    lines.push_back(std::move(row));
  }
  return lines;
}

}  // namespace caisson::build

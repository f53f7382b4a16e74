#include "events/output_archive.h"

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "events/gzip.h"

namespace caisson::events {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using Event = store::EventRow;

constexpr std::string_view kMark = "archive";  // in the data: the name of the file
constexpr std::string_view kText = "output";
constexpr std::string_view kPrefix = "output-", kSuffix = ".ndjson.gz";
constexpr size_t kMaxPacked = 64 << 20, kMaxText = 256 << 20;
constexpr size_t kKept = 8;  // files in memory

// "output-12-340.ndjson.gz": the first and the last event.
std::string NameOf(int64_t first, int64_t last) {
  return fmt::format("{}{}-{}{}", kPrefix, first, last, kSuffix);
}

struct Range {
  int64_t first = 0, last = 0;
};
std::optional<Range> RangeOf(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  size_t dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  auto first = ParseInt<int64_t>(name.substr(0, dash));
  auto last = ParseInt<int64_t>(name.substr(dash + 1));
  if (!first || !last) return std::nullopt;
  return Range{*first, *last};
}

std::vector<Range> Files(const std::string& directory) {
  std::vector<Range> found;
  std::error_code ec;
  for (fs::directory_iterator it(directory, ec), end; !ec && it != end; it.increment(ec))
    if (auto range = RangeOf(it->path().filename().string())) found.push_back(*range);
  std::ranges::sort(found, {}, &Range::first);
  return found;
}

json::object DataOf(const Event& event) {
  boost::system::error_code ec;
  json::value data = json::parse(event.data, ec);
  return ec || !data.is_object() ? json::object() : std::move(data.get_object());
}

// SECURITY: a name from a row is a file of the directory, and nothing else.
std::string FileOf(const Event& event) {
  if (event.type != "command_output" || event.data.find(kMark) == std::string::npos) return "";
  json::object data = DataOf(event);
  const json::value* mark = data.if_contains(kMark);
  if (!mark || !mark->is_string() || data.contains(kText)) return "";
  std::string name(mark->get_string());
  return RangeOf(name) ? name : "";
}

std::string Lost(const Event& event) {
  json::object data = DataOf(event);
  data.erase(kMark);
  data[kText] = "(this output was archived, and its file is gone)\n";
  return json::serialize(data);
}

}  // namespace

std::string OutputArchive::DirectoryFor(const Config& config) {
  constexpr std::string_view kScheme = "sqlite://";
  if (!config.database_url.starts_with(kScheme)) return "";
  return fs::path(config.database_url.substr(kScheme.size())).parent_path() / "archive";
}

Result<std::string> OutputArchive::Write(const std::vector<Event>& events) const {
  std::string text;
  for (const Event& event : events)
    text += json::serialize(json::object{{"id", event.id},
                                         {"at", FormatTime(event.at)},
                                         {"execution_id", event.execution_id},
                                         {"sandbox_id", event.sandbox_id},
                                         {"data", DataOf(event)}}) +
            '\n';
  std::error_code ec;
  fs::create_directories(directory_, ec);
  std::string name = NameOf(events.front().id, events.back().id);
  TRY(WriteFileAtomic(directory_ + "/" + name, Gzip(text), 0600));
  return name;
}

std::string OutputArchive::WithoutText(const Event& event, const std::string& file) {
  json::object data = DataOf(event);
  data.erase(kText);
  data[kMark] = file;
  return json::serialize(data);
}

bool OutputArchive::IsArchived(const Event& event) { return !FileOf(event).empty(); }

void OutputArchive::Restore(std::vector<Event>& events) {
  for (Event& event : events) {
    std::string file = FileOf(event);
    if (file.empty()) continue;
    auto texts = Load(file);
    auto found = texts->find(event.id);
    event.data = found == texts->end() ? Lost(event) : found->second;
  }
}

std::shared_ptr<const OutputArchive::Texts> OutputArchive::Load(const std::string& file) {
  {
    std::lock_guard lock(mutex_);
    for (const auto& [name, texts] : kept_)
      if (name == file) return texts;
  }
  auto read = Read(file);
  if (!read)
    LogWarn("archived output cannot be read", {{"file", file}, {"error", read.error().message()}});
  auto texts = std::make_shared<const Texts>(read ? std::move(*read) : Texts());
  if (!read) return texts;
  std::lock_guard lock(mutex_);
  kept_.emplace_back(file, texts);
  if (kept_.size() > kKept) kept_.pop_front();
  return texts;
}

Result<OutputArchive::Texts> OutputArchive::Read(const std::string& file) const {
  TRY_ASSIGN(std::string packed, ReadFile(directory_ + "/" + file, kMaxPacked));
  TRY_ASSIGN(std::string text, Gunzip(packed, kMaxText));
  Texts texts;
  for (std::string_view line : Split(text, '\n')) {
    if (line.empty()) continue;
    boost::system::error_code ec;
    json::value value = json::parse(line, ec);
    const json::object* row = ec ? nullptr : value.if_object();
    const json::value* id = row ? row->if_contains("id") : nullptr;
    const json::value* data = row ? row->if_contains("data") : nullptr;
    if (!id || !id->is_int64() || !data)
      return Fail(Code::kDataLoss, "a line of it is no archived event");
    texts[id->get_int64()] = json::serialize(*data);
  }
  return texts;
}

void OutputArchive::DeleteBefore(int64_t oldest) const {
  std::error_code ec;
  for (const Range& range : Files(directory_))
    if (range.last < oldest) fs::remove(fs::path(directory_) / NameOf(range.first, range.last), ec);
}

int64_t OutputArchive::Settled() const {
  auto files = Files(directory_);
  return files.empty() ? 0 : files.back().first - 1;
}

}  // namespace caisson::events

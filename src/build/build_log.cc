#include "build/build_log.h"

#include "base/log.h"
#include "build/log_archive.h"

namespace caisson::build {
namespace {

using store::BuildLogRow;
using store::BuildRow;
using store::Select;
using store::Transaction;

constexpr std::chrono::milliseconds kFlushInterval{100};
constexpr size_t kMaxWaiting = 10'000;  // lines in memory
constexpr size_t kBatch = 500;          // lines of one transaction
constexpr size_t kTailLines = 40;
constexpr int kMaxFailures = 20;  // of one batch
constexpr std::chrono::milliseconds kFlushPatience{5'000};
constexpr int64_t kOldBuilds = 20;  // whose logs are deleted at once

LogLines MakeLines(const events::Redactor& redactor, const Config& config) {
  return LogLines(redactor, static_cast<size_t>(config.build_log_line_chars));
}

// The number of the next line, and what follows the line `title`.
struct Known {
  int64_t next = 0;
  std::optional<int64_t> begun;  // the number of that line
  std::vector<BuildLogRow> lines;
};
Result<Known> FindKnown(Transaction& tx, const std::string& build_id, const std::string& title) {
  Known known;
  auto of_build = Select<BuildLogRow>().Eq(&BuildLogRow::build_id, build_id);
  auto newest = of_build, titled = of_build;
  TRY_ASSIGN(auto last, tx.First(newest.Order(&BuildLogRow::line, true)));
  if (last) known.next = last->line + 1;
  if (title.empty()) return known;
  titled.Eq(&BuildLogRow::source, "system").Eq(&BuildLogRow::text, title);
  TRY_ASSIGN(auto found, tx.First(titled.Order(&BuildLogRow::line, true)));
  if (!found) return known;
  known.begun = found->line;
  TRY_ASSIGN(known.lines, tx.List(of_build.Greater(&BuildLogRow::line, found->line)));
  return known;
}

}  // namespace

struct LogWriter::Queue {
  explicit Queue(asio::any_io_executor executor) : changed(executor) {}
  std::vector<BuildLogRow> waiting;
  bool closed = false;
  Condition changed;
};

LogWriter::LogWriter(const Config& config, const events::Redactor& redactor, std::string build_id,
                     std::string phase, std::shared_ptr<Queue> queue)
    : config_(config),
      build_id_(std::move(build_id)),
      phase_(std::move(phase)),
      lines_{MakeLines(redactor, config), MakeLines(redactor, config), MakeLines(redactor, config)},
      queue_(std::move(queue)) {}

LogWriter::~LogWriter() {
  EndOfOutput();
  TellOmitted();
  queue_->closed = true;
  queue_->changed.Notify();
}

void LogWriter::Say(std::string_view text) {
  for (LogLine& line : lines_[kSystem].Feed(text)) Add(kSystem, std::move(line));
  for (LogLine& line : lines_[kSystem].Finish()) Add(kSystem, std::move(line));
}

void LogWriter::Take(sdk::Stream stream, std::string_view piece) {
  Source source = stream == sdk::Stream::kStdout ? kStdout : kStderr;
  for (LogLine& line : lines_[source].Feed(piece)) Add(source, std::move(line));
}

void LogWriter::EndOfOutput() {
  for (Source source : {kStdout, kStderr})
    for (LogLine& line : lines_[source].Finish()) Add(source, std::move(line));
}

void LogWriter::Add(Source source, LogLine line) {
  if (source != kSystem) {
    tail_.push_back(line.text);
    if (tail_.size() > kTailLines) tail_.erase(tail_.begin());
  }
  if (source == kSystem) {
    auto known = known_said_.find(line.text);
    if (known != known_said_.end()) return (void)known_said_.erase(known);
  } else if (known_[source] > 0) {
    --known_[source];
    return;
  }
  if (full_) return Omit(source);
  BuildLogRow row = NextRow(source, std::move(line));
  full_ = row.line >= config_.build_log_lines || queue_->waiting.size() >= kMaxWaiting;
  if (full_) {
    row.source = kNames[kSystem];
    row.text = "The log is too long; what follows is left out.";
    row.raw.clear();
    Omit(source);
  }
  queue_->waiting.push_back(std::move(row));
}

BuildLogRow LogWriter::NextRow(Source source, LogLine line) {
  return {.build_id = build_id_,
          .line = next_++,
          .at = Now(),
          .source = std::string(kNames[source]),
          .phase = phase_,
          .text = std::move(line.text),
          .raw = std::move(line.raw)};
}

void LogWriter::Omit(Source source) {
  if (source != kSystem) ++omitted_;
}

// The page shows lines that begin like this as a mark in the log.
void LogWriter::TellOmitted() {
  if (omitted_ == 0) return;
  std::string text = fmt::format("Output cut: {} lines omitted.", std::exchange(omitted_, 0));
  queue_->waiting.push_back(NextRow(kSystem, {.text = std::move(text), .raw = ""}));
}

Task<void> LogWriter::Flush() {
  TellOmitted();
  auto deadline = std::chrono::steady_clock::now() + kFlushPatience;
  while (!queue_->waiting.empty() && std::chrono::steady_clock::now() < deadline) {
    queue_->changed.Notify();
    co_await SleepFor(std::chrono::milliseconds(5));
  }
}

std::string LogWriter::tail() const {
  std::string text;
  for (const std::string& line : tail_) text += line + "\n";
  return text;
}

BuildLogs::BuildLogs(asio::any_io_executor executor, store::Store& store, const Config& config,
                     const events::Redactor& redactor)
    : executor_(executor), store_(store), config_(config), redactor_(redactor), tasks_(executor) {}

Task<void> BuildLogs::Stop() {
  co_await tasks_.Join(kFlushPatience);
  co_await tasks_.Stop();
}

Task<Result<std::unique_ptr<LogWriter>>> BuildLogs::Open(std::string build_id, std::string phase,
                                                         std::string title) {
  CO_TRY_ASSIGN(Known known, co_await store_.Read([build_id, title](Transaction& tx) {
    return FindKnown(tx, build_id, title);
  }));
  auto queue = std::make_shared<LogWriter::Queue>(executor_);
  std::unique_ptr<LogWriter> writer(new LogWriter(config_, redactor_, build_id, phase, queue));
  writer->next_ = known.next;
  writer->full_ = known.next > config_.build_log_lines;
  for (BuildLogRow& row : known.lines) {
    if (row.source == LogWriter::kNames[LogWriter::kSystem])
      writer->known_said_.insert(std::move(row.text));
    else
      ++writer->known_[row.source == LogWriter::kNames[LogWriter::kStdout] ? 0 : 1];
  }
  tasks_.Spawn("write the log of a build", Write(store_, std::move(queue)));
  if (!title.empty() && !known.begun) writer->Say(title);
  co_return writer;
}

// Until the writer is gone and everything is written.
Task<void> BuildLogs::Write(store::Store& store, std::shared_ptr<LogWriter::Queue> queue) {
  int failures = 0;
  while (!queue->closed || !queue->waiting.empty()) {
    if (queue->waiting.empty() || failures > 0) co_await queue->changed.Wait(kFlushInterval);
    size_t count = std::min(queue->waiting.size(), kBatch);
    if (count == 0) continue;
    auto end = queue->waiting.begin() + static_cast<ptrdiff_t>(count);
    std::vector<BuildLogRow> batch(queue->waiting.begin(), end);
    Status done = co_await store.Write([batch](Transaction& tx) mutable -> Status {
      for (BuildLogRow& row : batch) TRY(tx.Append(row));
      return {};
    });
    failures = done ? 0 : failures + 1;
    if (!done && failures < kMaxFailures) continue;
    if (!done)
      LogWarn("lines of a build's log are lost",
              {{"build_id", batch.front().build_id}, {"error", done.error().message()}});
    queue->waiting.erase(queue->waiting.begin(),
                         queue->waiting.begin() + static_cast<ptrdiff_t>(count));
  }
}

// ---- reading -----------------------------------------------------------------------------------

Result<LogPage> LinesBefore(Transaction& tx, const std::string& archive,
                            const std::string& build_id, int64_t before, int64_t limit) {
  auto select = Select<BuildLogRow>().Eq(&BuildLogRow::build_id, build_id);
  if (before >= 0) select.Less(&BuildLogRow::line, before);
  LogPage page;
  TRY_ASSIGN(page.lines, tx.List(select.Order(&BuildLogRow::line, true).Limit(limit + 1)));
  std::ranges::reverse(page.lines);
  if (page.lines.empty()) {
    TRY_ASSIGN(page.lines, ArchivedLines(archive, build_id, 0, before >= 0 ? before : INT64_MAX,
                                         limit + 1, /*newest=*/true));
  }
  page.has_more = static_cast<int64_t>(page.lines.size()) > limit;
  if (page.has_more) page.lines.erase(page.lines.begin());
  return page;
}

Result<std::vector<BuildLogRow>> LinesFrom(Transaction& tx, const std::string& archive,
                                           const std::string& build_id, int64_t from,
                                           int64_t limit) {
  TRY_ASSIGN(auto lines, tx.List(Select<BuildLogRow>()
                                     .Eq(&BuildLogRow::build_id, build_id)
                                     .Greater(&BuildLogRow::line, from - 1)
                                     .Order(&BuildLogRow::line)
                                     .Limit(limit)));
  if (!lines.empty()) return lines;
  return ArchivedLines(archive, build_id, from, INT64_MAX, limit, /*newest=*/false);
}

// ---- the end of logs ---------------------------------------------------------------------------

namespace {

// The oldest builds that ended before `before` and still have a log.
Result<std::vector<std::string>> WithOldLogs(Transaction& tx, Time before) {
  TRY_ASSIGN(auto lines, tx.List(Select<BuildLogRow>()
                                     .Less(&BuildLogRow::at, before)
                                     .Eq(&BuildLogRow::line, 0)
                                     .Order(&BuildLogRow::at)
                                     .Limit(kOldBuilds)));
  std::vector<std::string> ids;
  for (const BuildLogRow& line : lines) {
    TRY_ASSIGN(auto build, tx.Get<BuildRow>(line.build_id));
    if (build && build->completed_at && *build->completed_at < before) ids.push_back(build->id);
  }
  return ids;
}

}  // namespace

Task<Result<int64_t>> DeleteOldLogs(store::Store& store, Time before, std::string archive) {
  CO_TRY_ASSIGN(auto ids,
                co_await store.Read([before](Transaction& tx) { return WithOldLogs(tx, before); }));
  for (const std::string& id : ids) {
    auto mine = Select<BuildLogRow>().Eq(&BuildLogRow::build_id, id);
    if (!archive.empty()) {
      CO_TRY_ASSIGN(auto lines, co_await store.Read([mine](Transaction& tx) {
        auto all = mine;
        return tx.List(all.Order(&BuildLogRow::line));
      }));
      CO_TRY(ArchiveLog(archive, id, lines));
    }
    CO_TRY(co_await store.Write([mine](Transaction& tx) { return tx.Delete(mine); }));
  }
  co_return static_cast<int64_t>(ids.size());
}

}  // namespace caisson::build

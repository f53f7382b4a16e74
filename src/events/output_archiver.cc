#include "events/output_archiver.h"

#include "base/log.h"

namespace caisson::events {
namespace {

using store::Select;
using Event = store::EventRow;

// Of one file: small enough that reading a page of the log costs little.
constexpr int64_t kRows = 2'000;
constexpr size_t kBytes = 1 << 20;

}  // namespace

struct OutputArchiver::Taken {
  std::vector<Event> events;
  std::string file;  // that holds them
  int64_t end = 0;
  bool more = false;
};

Result<OutputArchiver::Taken> OutputArchiver::Take(store::Transaction& tx) const {
  Taken taken{.end = done_};
  TRY_ASSIGN(auto oldest, tx.First(Select<Event>().Order(&Event::id)));
  archive_.DeleteBefore(oldest ? oldest->id : INT64_MAX);
  auto old = Select<Event>().Less(&Event::at, Now() - age_);
  TRY_ASSIGN(auto last, tx.First(old.Order(&Event::at, true).Order(&Event::id, true)));
  if (!last || last->id <= done_) return taken;
  TRY_ASSIGN(auto rows, tx.List(Select<Event>()
                                    .Greater(&Event::id, done_)
                                    .Less(&Event::id, last->id + 1)
                                    .Order(&Event::id)
                                    .Limit(kRows)));
  taken.more = static_cast<int64_t>(rows.size()) == kRows;
  size_t bytes = 0;
  for (Event& row : rows) {
    taken.end = row.id;
    if (row.type != "command_output" || OutputArchive::IsArchived(row)) continue;
    bytes += row.data.size();
    taken.events.push_back(std::move(row));
    taken.more |= bytes >= kBytes;
    if (bytes >= kBytes) break;
  }
  if (taken.events.empty()) return taken;
  TRY_ASSIGN(taken.file, archive_.Write(taken.events));
  return taken;
}

Task<Result<bool>> OutputArchiver::Some() {
  if (age_.count() <= 0 || !archive_.usable()) co_return false;
  CO_TRY_ASSIGN(Taken taken,
                co_await store_.Read([this](store::Transaction& tx) { return Take(tx); }));
  // The file is on disk: now the rows may let go of it.
  if (!taken.events.empty()) {
    CO_TRY(co_await store_.Write([&taken](store::Transaction& tx) -> Status {
      for (const Event& event : taken.events)
        TRY(tx.Set(Select<Event>().Eq(&Event::id, event.id),
                   {store::Assign(&Event::data, OutputArchive::WithoutText(event, taken.file))}));
      return {};
    }));
    LogInfo("output was archived",
            {{"file", taken.file}, {"events", static_cast<int64_t>(taken.events.size())}});
  }
  done_ = taken.end;
  co_return taken.more;
}

}  // namespace caisson::events

#include "build/timeline.h"

#include <algorithm>

#include "base/text.h"
#include "build/event.h"
#include "build/state.h"
#include "work/json_fields.h"

namespace caisson::build {
namespace {

using store::BuildRow;
using store::Select;

constexpr int64_t kBatch = 500;  // rows in memory at once

std::vector<TimelineColumn> EmptyColumns() {
  return {{.id = "waiting", .title = "Waiting", .states = {"queued", "scheduled"}},
          {.id = "running",
           .title = "Under way",
           .states = {"starting", "scaffold", "code", "deps", "checks"}},
          {.id = "ready", .title = "Ready", .states = {"ready"}},
          {.id = "failed", .title = "Failed", .states = {"failed"}}};
}

bool Matches(const BuildRow& row, const TimelineFilter& filter, const std::string& text) {
  if (!filter.types.empty() && std::ranges::find(filter.types, TypeOf(row)) == filter.types.end())
    return false;
  if (text.empty()) return true;
  std::string version = VersionName(row.number);
  const std::array<const std::string*, 5> fields = {&row.project, &row.goal, &version,
                                                    &row.framework, &row.error_summary};
  return std::ranges::any_of(fields, [&](const std::string* field) {
    return ToLower(*field).find(text) != std::string::npos;
  });
}

Select<BuildRow> SelectOf(const std::string& owner_id, const TimelineFilter& filter) {
  auto select = Select<BuildRow>().Eq(&BuildRow::removal, "");
  if (!owner_id.empty()) select.Eq(&BuildRow::owner_id, owner_id);
  if (!filter.project.empty()) select.Eq(&BuildRow::project, filter.project);
  if (filter.from)
    select.Greater(&BuildRow::enqueued_at, *filter.from - std::chrono::nanoseconds(1));
  if (filter.before) select.Less(&BuildRow::enqueued_at, *filter.before);
  return select.Order(&BuildRow::enqueued_at, true).Order(&BuildRow::id);
}

void Take(std::vector<TimelineColumn>& columns, BuildRow row, int64_t per_column) {
  auto column = std::ranges::find_if(columns, [&](const TimelineColumn& one) {
    return std::ranges::find(one.states, row.state) != one.states.end();
  });
  if (column == columns.end()) return;
  if (column->count++ < per_column) column->rows.push_back(std::move(row));
}

}  // namespace

std::string_view TypeOf(const BuildRow& row) {
  if (work::ParseObject(row.options).contains("restores")) return "rollback";
  return row.parent_id.empty() ? "first" : "iteration";
}

Result<std::vector<TimelineColumn>> ReadTimeline(store::Transaction& tx,
                                                 const std::string& owner_id,
                                                 const TimelineFilter& filter) {
  std::vector<TimelineColumn> columns = EmptyColumns();
  std::string text = ToLower(Trim(filter.text));
  auto select = SelectOf(owner_id, filter).Limit(kBatch);
  for (int64_t offset = 0; offset < kTimelineRows; offset += kBatch) {
    TRY_ASSIGN(auto rows, tx.List(select.Offset(offset)));
    for (BuildRow& row : rows)
      if (Matches(row, filter, text)) Take(columns, std::move(row), filter.per_column);
    if (static_cast<int64_t>(rows.size()) < kBatch) break;
  }
  return columns;
}

}  // namespace caisson::build

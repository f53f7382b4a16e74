// The history of builds as a board: columns by state, newest first, found by text, kind and date.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "store/build_rows.h"
#include "store/transaction.h"

namespace caisson::build {

struct TimelineFilter {
  std::string project;               // "" = any
  std::string text;                  // in project, goal, version, framework or error; "" = any
  std::vector<std::string> types;    // of kBuildTypes; empty = any
  std::optional<Time> from, before;  // when it was asked for
  int64_t per_column = 50;
};

// The first of a project, a change of the version before, an old version brought back.
inline constexpr std::array<std::string_view, 3> kBuildTypes = {"first", "iteration", "rollback"};
std::string_view TypeOf(const store::BuildRow& row);

struct TimelineColumn {
  std::string_view id, title;
  std::vector<std::string_view> states;
  int64_t count = 0;                  // of all that match
  std::vector<store::BuildRow> rows;  // the newest of them
};

// Of the newest kTimelineRows builds; `owner_id` "" = of everybody's.
inline constexpr int64_t kTimelineRows = 10'000;
Result<std::vector<TimelineColumn>> ReadTimeline(store::Transaction& tx,
                                                 const std::string& owner_id,
                                                 const TimelineFilter& filter);

}  // namespace caisson::build

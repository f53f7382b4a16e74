// How much a user may build.
#pragma once

#include <map>
#include <string>

#include "base/config.h"
#include "base/error.h"
#include "base/time.h"

namespace caisson::build {

// 0 = unlimited.
struct Tier {
  std::string name;
  int64_t per_user = 0, per_project = 0;  // at once
  int64_t per_day = 0;
  int64_t iterations = 0;  // further builds of a project before somebody confirms more
  int64_t boost = 0;       // added to the priority in the queue
};
// The setting build_tiers; errors name what is wrong.
Result<std::map<std::string, Tier>> ParseTiers(const Config& config);
// The first moment of the next day, in UTC: when the daily limit starts anew.
Time NextDay(Time now);

}  // namespace caisson::build

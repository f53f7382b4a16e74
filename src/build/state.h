// The states of a build and which may follow which.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "store/build_rows.h"
#include "store/transaction.h"

namespace caisson::build {

//   queued -> starting -> scaffold -> code -> deps -> checks -> ready
//   queued <-> scheduled; checks -> scaffold (tried again); every one but the last two -> failed
std::vector<std::string_view> AllStates();
bool MayFollow(std::string_view from, std::string_view to);
bool IsTerminal(std::string_view state);
// For people: "Installing dependencies".
std::string_view StageLabel(std::string_view state);

// Compare and set: kFailedPrecondition if the build is not in the state `row` says any more, or if
// `to` may not follow it. On success `row` is as stored.
Status MoveTo(store::Transaction& tx, store::BuildRow& row, std::string_view to);

}  // namespace caisson::build

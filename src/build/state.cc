#include "build/state.h"

#include <algorithm>
#include <array>

namespace caisson::build {
namespace {

struct State {
  std::string_view name, label;
  std::array<std::string_view, 2> next;  // besides "failed"
};
constexpr std::array kStates = {
    State{"queued", "Queued", {"starting", "scheduled"}},
    State{"scheduled", "Scheduled", {"queued"}},
    State{"starting", "Starting", {"scaffold"}},
    State{"scaffold", "Scaffolding workspace", {"code"}},
    State{"code", "Writing code", {"deps"}},
    State{"deps", "Installing dependencies", {"checks"}},
    State{"checks", "Running checks", {"ready", "scaffold"}},
    State{"ready", "Build complete", {}},
    State{"failed", "Build failed", {}},
};

const State* Find(std::string_view name) {
  const auto* found = std::ranges::find(kStates, name, &State::name);
  return found == kStates.end() ? nullptr : found;
}

}  // namespace

std::vector<std::string_view> AllStates() {
  std::vector<std::string_view> names;
  for (const State& state : kStates) names.push_back(state.name);
  return names;
}

bool IsTerminal(std::string_view state) { return state == "ready" || state == "failed"; }

bool MayFollow(std::string_view from, std::string_view to) {
  const State* state = Find(from);
  if (!state || !Find(to) || IsTerminal(from)) return false;
  return to == "failed" || std::ranges::find(state->next, to) != state->next.end();
}

std::string_view StageLabel(std::string_view state) {
  const State* found = Find(state);
  return found ? found->label : "";
}

Status MoveTo(store::Transaction& tx, store::BuildRow& row, std::string_view to) {
  if (!MayFollow(row.state, to))
    return Fail(Code::kFailedPrecondition, "a build that is {} cannot become {}", row.state, to);
  using store::BuildRow;
  TRY_ASSIGN(
      int64_t moved,
      tx.Set(store::Select<BuildRow>().Eq(&BuildRow::id, row.id).Eq(&BuildRow::state, row.state),
             {store::Assign(&BuildRow::state, std::string(to))}));
  if (moved == 0) return Fail(Code::kFailedPrecondition, "the build is not {} any more", row.state);
  row.state = to;
  return tx.Update(row);
}

}  // namespace caisson::build

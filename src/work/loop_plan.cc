#include "work/loop_plan.h"

#include <algorithm>
#include <array>
#include <boost/json/value_from.hpp>

#include "work/json_fields.h"
#include "work/loop_text.h"

namespace caisson::work {
namespace {

constexpr size_t kMaxSteps = 50, kMaxFiles = 50, kMaxTitle = 200;
constexpr std::array kStatuses = {"pending", "in_progress", "completed", "failed"};

Result<json::object> ReadStep(const json::object& step) {
  std::string title = TextOf(step, "title"), status = TextOf(step, "status");
  if (title.empty()) return Fail(Code::kInvalidArgument, "every step needs a title");
  if (std::ranges::find(kStatuses, status) == kStatuses.end())
    return Fail(Code::kInvalidArgument, "the status of a step is one of {}, not '{}'",
                fmt::join(kStatuses, ", "), Shorten(status, kMaxTitle));
  std::vector<std::string> files = TextsOf(step, "files_to_modify");
  if (files.size() > kMaxFiles)
    return Fail(Code::kInvalidArgument, "a step has at most {} files", kMaxFiles);
  for (const std::string& path : files)
    if (path.starts_with('/') || !ToolPath("/w", path))
      return Fail(Code::kInvalidArgument, "'{}' is no path of the working directory",
                  Shorten(path, kMaxTitle));
  return json::object{{"title", Shorten(title, kMaxTitle)},
                      {"status", status},
                      {"files_to_modify", json::value_from(files)}};
}

}  // namespace

Result<json::array> ReadPlan(const json::object& input) {
  const json::array& steps = ArrayIn(input, "steps");
  if (steps.empty() || steps.size() > kMaxSteps)
    return Fail(Code::kInvalidArgument, "update_plan needs 1 to {} 'steps'", kMaxSteps);
  json::array plan;
  for (const json::value& one : steps) {
    if (!one.is_object()) return Fail(Code::kInvalidArgument, "a step is an object");
    TRY_ASSIGN(json::object step, ReadStep(one.get_object()));
    plan.push_back(std::move(step));
  }
  return plan;
}

}  // namespace caisson::work

#include "build/event.h"

#include <boost/json/serialize.hpp>

#include "base/text.h"
#include "build/state.h"

namespace caisson::build {
namespace {

constexpr std::string_view kPrefix = "build_v0_";

}  // namespace

std::string VersionName(int64_t number) {
  return number > 0 ? fmt::format("{}{}", kPrefix, number) : std::string();
}

std::optional<int64_t> ParseVersion(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  auto number = ParseInt<int64_t>(name.substr(kPrefix.size()));
  return number && VersionName(*number) == name ? number : std::nullopt;
}

store::EventRow About(const store::BuildRow& build, std::string type, json::object data) {
  store::EventRow event;
  event.at = Now();
  event.type = std::move(type);
  event.owner_id = build.owner_id;
  event.build_id = build.id;
  event.run_id = build.run_id;
  event.sandbox_id = build.sandbox_id;
  event.data = json::serialize(data);
  return event;
}

json::object BuildData(const store::BuildRow& build) {
  json::object data{
      {"state", build.state}, {"stage_label", StageLabel(build.state)}, {"project", build.project}};
  auto add = [&](std::string_view name, const std::string& text) {
    if (!text.empty()) data[name] = text;
  };
  add("version", VersionName(build.number));
  add("preview_url", build.preview_url);
  add("error_summary", build.error_summary);
  add("debug_id", build.debug_id);
  return data;
}

}  // namespace caisson::build

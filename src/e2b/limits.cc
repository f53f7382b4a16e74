#include "e2b/limits.h"

#include <array>
#include <boost/json.hpp>

#include "e2b/fields.h"

namespace caisson::e2b {
namespace {

using sandbox::LimitOptions;

struct Named {
  std::string_view name;
  std::optional<int64_t> LimitOptions::* field;
};
constexpr std::array kNames = {
    Named{"cpuCount", &LimitOptions::cpus},        Named{"memoryMB", &LimitOptions::memory_mb},
    Named{"diskSizeMB", &LimitOptions::disk_mb},   Named{"pids", &LimitOptions::pids},
    Named{"openFiles", &LimitOptions::open_files}, Named{"outputKBps", &LimitOptions::output_kbps},
};

}  // namespace

Result<LimitOptions> DecodeLimits(const boost::json::object& limits) {
  LimitOptions options;
  for (const auto& [name, value] : limits)
    if (std::none_of(kNames.begin(), kNames.end(),
                     [&](const Named& known) { return known.name == std::string_view(name); }))
      return Fail(Code::kInvalidArgument,
                  "there is no limit '{}'; there are cpuCount, memoryMB, diskSizeMB, pids, "
                  "openFiles and outputKBps",
                  std::string_view(name));
  for (const Named& known : kNames) {
    TRY_ASSIGN(options.*known.field, TakeInt32(limits, fmt::format("limits.{}", known.name)));
  }
  return options;
}

boost::json::object EncodeLimits(const sandbox::Info& info) {
  return {{"cpuCount", info.cpus},        {"memoryMB", info.memory_mb},
          {"diskSizeMB", info.disk_mb},   {"pids", info.pids},
          {"openFiles", info.open_files}, {"outputKBps", info.output_kbps}};
}

}  // namespace caisson::e2b

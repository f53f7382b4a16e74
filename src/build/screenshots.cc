#include "build/screenshots.h"

#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "build/build_flow.h"

namespace caisson::build {
namespace {

constexpr size_t kSmallest = 5'000;  // bytes; less is an empty page
constexpr size_t kLargest = 8 << 20;
constexpr int kMaxFailures = 3;
constexpr std::chrono::minutes kRest{5};
constexpr int kNoBrowser = 3;  // of the script

// $1: the browser or "auto", $2: where to, $3: the page.
constexpr std::string_view kShoot = R"sh(
browser=$1
if [ "$browser" = auto ]; then
  for one in chromium chromium-browser google-chrome; do
    command -v $one >/dev/null 2>&1 && browser=$one && break
  done
fi
command -v "$browser" >/dev/null 2>&1 || exit 3
exec "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
  --window-size=1280,800 --timeout=10000 --screenshot="$2" "$3"
)sh";

}  // namespace

std::string WritableDirectory(const Config& config) {
  constexpr std::string_view kScheme = "sqlite://";
  if (!config.database_url.starts_with(kScheme)) return "";
  return std::filesystem::path(config.database_url.substr(kScheme.size())).parent_path().string();
}

Screenshots::Screenshots(const Config& config, Workbench& workbench, std::string directory)
    : config_(config),
      workbench_(workbench),
      directory_(std::move(directory)),
      breaker_(kMaxFailures, kRest) {}

Task<std::string> Screenshots::Take(store::BuildRow build) {
  if (directory_.empty() || config_.browser == "none") co_return "";
  if (!breaker_.Enter("pictures of previews")) co_return "";
  auto taken = co_await WithDeadline(std::chrono::milliseconds(config_.screenshot_timeout_ms),
                                     "taking a picture", TakeOnce(build));
  bool failed = !taken && taken.error().code() != Code::kNotFound;
  breaker_.Leave(failed ? Status(Fail(Code::kUnavailable, "no picture")) : Status());
  if (failed)
    LogInfo("there is no picture of a preview",
            {{"build_id", build.id}, {"error", taken.error().message()}});
  co_return taken.value_or("");
}

Task<Result<std::string>> Screenshots::TakeOnce(const store::BuildRow& build) {
  Place place = PlaceOf(build);
  std::string inside = "/tmp/.caisson/picture-" + build.id + ".png";
  sdk::Command command;
  command.argv = {"/bin/sh",
                  "-c",
                  std::string(kShoot),
                  "sh",
                  config_.browser,
                  inside,
                  fmt::format("http://127.0.0.1:{}/", build.port)};
  command.timeout = std::chrono::milliseconds(config_.screenshot_timeout_ms);
  CO_TRY_ASSIGN(auto done, co_await workbench_.Run(place, "picture", std::move(command)));
  if (done.exit_code == kNoBrowser)
    co_return Fail(Code::kNotFound, "there is no browser in the sandbox");
  if (done.exit_code != 0)
    co_return Fail(Code::kUnavailable, "the browser ended with status {}", done.exit_code);
  CO_TRY_ASSIGN(std::string picture, co_await workbench_.Read(place, inside, kLargest));
  if (picture.size() < kSmallest) co_return Fail(Code::kNotFound, "the page is empty");
  std::error_code ec;
  std::filesystem::create_directories(directory_, ec);
  std::string name = build.id + ".png";
  CO_TRY(WriteFileAtomic(directory_ + "/" + name, picture, 0600));
  co_return name;
}

}  // namespace caisson::build

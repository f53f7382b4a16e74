#include "build/yard.h"

#include "build/log_archive.h"

namespace caisson::build {
namespace {

Runners MakeRunners(asio::any_io_executor executor, work::Platform platform, Workbench& workbench,
                    ModelAccess models) {
  Runners runners;
  auto add = [&](std::unique_ptr<Runner> runner) {
    std::string name(runner->name());
    runners[name] = std::move(runner);
  };
  add(MakeFilesRunner());
  add(MakeLlmRunner(executor, platform.config));
  add(MakeCommandRunner(platform, workbench, std::move(models)));
  return runners;
}

std::string PicturesOf(const Config& config) {
  std::string directory = WritableDirectory(config);
  return directory.empty() ? directory : directory + "/pictures";
}

}  // namespace

Yard::Yard(asio::any_io_executor executor, work::Platform platform, work::Sandboxes& sandboxes,
           work::StartLimit& starts, work::AgentLoop& loop, ModelAccess models, uint16_t port)
    : config_(platform.config),
      workbench_(platform.config, sandboxes, loop, MakePreviewSite(platform.config, port)),
      logs_(executor, platform.store, platform.config, platform.log.redactor()),
      tiers_(ParseTiers(platform.config)),
      queue_(platform.config, platform.flow, tiers_.value_or(std::map<std::string, Tier>())),
      runners_(MakeRunners(executor, platform, workbench_, std::move(models))),
      screenshots_(platform.config, workbench_, PicturesOf(platform.config)),
      flow(platform, workbench_, logs_, queue_, runners_,
           [this](store::BuildRow build) { return screenshots_.Take(std::move(build)); }),
      builds(platform, queue_, starts),
      removals(platform, workbench_, PicturesOf(platform.config)),
      previews(executor, platform, workbench_, builds, flow, queue_, logs_, removals) {}

Status Yard::Check() const {
  if (!tiers_) return tl::unexpected(tiers_.error());
  return CheckLogArchive(config_);
}

Task<void> Yard::Stop() {
  co_await previews.Stop();
  co_await logs_.Stop();
}

}  // namespace caisson::build

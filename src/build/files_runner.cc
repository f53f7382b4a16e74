#include "build/runner.h"

namespace caisson::build {
namespace {

class FilesRunner final : public Runner {
 public:
  std::string_view name() const override { return "files"; }
  bool mends() const override { return false; }

  Task<Result<RunnerResult>> Run(RunnerJob job) override {
    const boost::json::value* files = job.options.if_contains("files");
    if (!files) co_return Fail(Code::kInvalidArgument, "the build has no files");
    RunnerResult result;
    CO_TRY_ASSIGN(result.changes, ParseFileChanges(*files));
    if (result.changes.empty()) co_return Fail(Code::kInvalidArgument, "the build has no files");
    if (job.log) job.log("system", fmt::format("{} given", Counted(result.changes.size(), "file")));
    co_return result;
  }
};

}  // namespace

std::unique_ptr<Runner> MakeFilesRunner() { return std::make_unique<FilesRunner>(); }

}  // namespace caisson::build

#include "build/mending.h"

#include "base/text.h"
#include "build/build_flow.h"
#include "build/event.h"
#include "work/json_fields.h"

namespace caisson::build {
namespace {

using flow::Outcome;
using store::BuildRow;
using store::Transaction;

constexpr std::string_view kPrefix = "mend-";

}  // namespace

std::string MendStep(int64_t round) { return fmt::format("{}{}", kPrefix, round); }

int64_t RoundOf(std::string_view step) {
  if (!step.starts_with(kPrefix)) return 0;
  return ParseInt<int64_t>(step.substr(kPrefix.size())).value_or(0);
}

int64_t FixesOf(const json::object& options) {
  if (!options.contains("max_fixes")) return kUsualFixes;
  return std::clamp<int64_t>(work::IntOf(options, "max_fixes"), 0, kMaxFixes);
}

std::string MendTitle(int64_t round, int64_t max) {
  return fmt::format("Auto-fixing (attempt {} of {})", round, max);
}

std::string FailureBefore(const flow::StepContext& context, int64_t round) {
  auto found = context.results.find(round > 1 ? MendStep(round - 1) : "checks");
  return found == context.results.end() ? "" : work::TextOf(found->second, "failed");
}

// The state goes back together with the outcome: in a round it tells what was done of it.
Outcome BuildFlow::ChecksFailed(const Scene& scene, int64_t round, const std::string& line,
                                const sdk::CommandResult& result) const {
  int64_t max = FixesOf(scene.options);
  if (round >= max || !FindRunner(scene.build.runner)->mends())
    return FailBuild(scene, "checks", result);
  std::string tail = scene.log->tail();
  Failure failure = ExplainFailure("checks", tail, result.exit_code, result.timed_out);
  Outcome outcome = Outcome::Done(
      {{"failed", fmt::format("$ {}\n{}\n{}", line, failure.summary, LastPart(tail))}});
  outcome.also = [this, id = scene.build.id, round, max](Transaction& tx) -> Status {
    TRY_ASSIGN(BuildRow row, tx.Need<BuildRow>(id, "build"));
    TRY(Move(tx, row, "scaffold"));
    TRY(platform_.log.Emit(tx,
                           About(row, "build.autofix", {{"attempt", round + 1}, {"max", max}})));
    return {};
  };
  return outcome;
}

Task<Status> BuildFlow::Enter(Scene& scene, std::string to,
                              std::function<Status(Transaction&)> also) {
  CO_TRY(co_await platform_.store.Write(
      [this, build = scene.build, to, also](Transaction& tx) -> Status {
        TRY_ASSIGN(BuildRow row, tx.Need<BuildRow>(build.id, "build"));
        if (row.state != build.state)
          return Fail(Code::kFailedPrecondition, "the build is not {} any more", build.state);
        if (also) TRY(also(tx));
        return Move(tx, row, to);
      }));
  scene.build.state = to;
  co_return Status();
}

Task<Result<std::optional<Outcome>>> BuildFlow::Rewrite(Scene& scene, int64_t round,
                                                        std::string failure) {
  std::string before = scene.build.sandbox_id;
  CO_TRY(co_await Open(scene));
  if (scene.build.state == "scaffold" || scene.build.sandbox_id != before)
    CO_TRY(co_await workbench_.Put(PlaceOf(scene.build), scene.files, {}));
  if (scene.build.state == "scaffold") CO_TRY(co_await Enter(scene, "code", nullptr));
  RunnerJob job = JobOf(scene);
  job.files = scene.files;
  job.failure = std::move(failure);
  job.attempt = round + 1;
  Draft draft;
  CO_TRY_ASSIGN(auto failed, co_await Ask(scene, std::move(job), draft));
  if (failed) co_return failed;
  // Before they are stored: after that nobody knows any more what was there.
  CO_TRY(co_await workbench_.Put(PlaceOf(scene.build), {}, Missing(scene.files, draft.files)));
  CO_TRY(co_await Enter(scene, "deps", [this, id = scene.build.id, draft](Transaction& tx) {
    return Keep(tx, id, draft);
  }));
  scene.files = std::move(draft.files);
  co_return std::nullopt;
}

Task<Result<Outcome>> BuildFlow::Mend(flow::StepContext context, Scene scene) {
  int64_t round = RoundOf(context.step);
  scene.errand = MendStep(round) + "-";
  if (scene.build.state == "scaffold" || scene.build.state == "code") {
    CO_TRY_ASSIGN(auto failed, co_await Rewrite(scene, round, FailureBefore(context, round)));
    if (failed) co_return std::move(*failed);
  }
  CO_TRY_ASSIGN(auto failed, co_await Prepare(scene, ""));
  if (failed) co_return std::move(*failed);
  if (scene.build.state == "deps") CO_TRY(co_await Enter(scene, "checks", nullptr));
  co_return co_await RunChecks(scene, round);
}

}  // namespace caisson::build

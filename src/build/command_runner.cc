#include "build/command_runner.h"

#include "git/broker.h"
#include "work/adapter.h"
#include "work/agents.h"
#include "work/json_fields.h"

namespace caisson::build {
namespace {

using store::AgentRow;
using store::Transaction;

constexpr size_t kMaxTitle = 120;
constexpr size_t kMaxError = 2'000;

// What the agent has made of the files.
std::vector<FileChange> ChangesBetween(const Files& before, const Files& after) {
  std::vector<FileChange> changes;
  for (const auto& [path, content] : before)
    if (!after.contains(path)) changes.push_back({.path = path});
  for (const auto& [path, content] : after) {
    auto old = before.find(path);
    if (old == before.end() || old->second != content)
      changes.push_back({.path = path, .new_content = content});
  }
  return changes;
}

std::string Description(const RunnerJob& job) {
  if (job.failure.empty()) return job.goal;
  return job.goal +
         "\n\nYour last attempt is in the current directory. Its checks failed; mend it. What went "
         "wrong:\n" +
         job.failure;
}

class CommandRunner final : public Runner {
 public:
  CommandRunner(work::Platform platform, Workbench& workbench, ModelAccess models)
      : platform_(platform), workbench_(workbench), models_(std::move(models)) {}

  std::string_view name() const override { return "command"; }
  bool needs_sandbox() const override { return true; }

  Task<Result<RunnerResult>> Run(RunnerJob job) override {
    CO_TRY_ASSIGN(AgentRow agent, co_await platform_.store.Read([&job](Transaction& tx) {
      return work::NeedAgent(tx, job.owner_id, work::TextOf(job.options, "agent_id"));
    }));
    const work::Adapter* adapter = work::FindAdapter(agent.adapter);
    if (!adapter)
      co_return Fail(Code::kFailedPrecondition,
                     "the agent {} does not work in sandboxes of this server", agent.name);
    CO_TRY_ASSIGN(sdk::Command command, adapter->MakeCommand(JobOf(job, agent)));
    Place place{.owner_id = job.owner_id,
                .build_id = job.build_id,
                .sandbox_id = job.sandbox_id,
                .workspace = job.workspace};
    if (!models_.routes.empty()) CO_TRY(co_await models_.grant(job.owner_id, job.sandbox_id));
    std::unique_ptr<work::OutputParser> parser = adapter->MakeParser();
    command.on_output = [&](sdk::Stream stream, std::string_view piece) {
      (void)parser->Feed(stream, piece);
      job.log(stream == sdk::Stream::kStderr ? "stderr" : "stdout", piece);
    };
    // A name is a process: the one that mends is not the one that was there before.
    std::string name = job.attempt > 1 ? fmt::format("agent-{}", job.attempt) : "agent";
    auto ended = co_await workbench_.Run(place, name, std::move(command));
    models_.revoke(job.sandbox_id);
    if (!ended) co_return tl::unexpected(std::move(ended).error());
    work::AgentReport report = parser->Finish();
    if (report.sleeps_until) co_return RunnerResult{.sleeps_until = report.sleeps_until};
    CO_TRY(CheckEnd(*ended, report));
    CO_TRY_ASSIGN(Collected after, co_await workbench_.Collect(place, job.files));
    for (const std::string& path : after.too_large)
      job.log("system", path + " is in no version: it is too large.");
    // What is recorded already shall not be counted twice.
    if (report.usage.recorded) report.usage.tokens_in = report.usage.tokens_out = 0;
    co_return RunnerResult{.changes = ChangesBetween(job.files, after.files),
                           .model = report.usage.model,
                           .tokens_in = report.usage.tokens_in,
                           .tokens_out = report.usage.tokens_out};
  }

 private:
  work::AgentJob JobOf(const RunnerJob& job, const AgentRow& agent) const {
    return {.config = work::ParseObject(agent.config),
            .title = work::Shorten(job.goal.substr(0, job.goal.find('\n')), kMaxTitle),
            .description = Description(job),
            .task_id = job.build_id,
            .execution_id = job.build_id,
            .workdir = job.workspace,
            .timeout = std::chrono::seconds(platform_.config.build_runner_timeout_s),
            .model_routes = models_.routes,
            .model_url = &git::Broker::ModelUrl};
  }

  static Status CheckEnd(const sdk::CommandResult& ended, const work::AgentReport& report) {
    if (ended.timed_out)
      return Fail(Code::kAborted, "the agent did not come to an end in its time");
    if (!report.error.empty()) return Fail(Code::kUnknown, "{}", report.error);
    if (ended.exit_code == 0) return {};
    return Fail(Code::kUnknown, "the agent ended with status {}: {}", ended.exit_code,
                work::Shorten(ended.stderr_text, kMaxError));
  }

  work::Platform platform_;
  Workbench& workbench_;
  ModelAccess models_;
};

}  // namespace

std::unique_ptr<Runner> MakeCommandRunner(work::Platform platform, Workbench& workbench,
                                          ModelAccess models) {
  return std::make_unique<CommandRunner>(platform, workbench, std::move(models));
}

}  // namespace caisson::build

#include "session/message_flow.h"

#include "base/log.h"
#include "session/messages.h"
#include "session/status.h"
#include "work/agents.h"
#include "work/json_fields.h"
#include "work/run_home.h"

namespace caisson::session {
namespace {

using flow::Outcome;
using flow::StepContext;
using store::MessageRow;
using store::RunRow;
using store::Select;
using store::SessionRow;
using store::StepRow;
using store::Transaction;
using work::TextOf;

// What was said before; the text of it is bounded, too.
constexpr int64_t kEarlier = 20;

Result<std::vector<work::SandboxRow>> SandboxesOf(Transaction& tx, const RunRow& run) {
  return work::SandboxesOf(tx, "session", {TextOf(work::ParseObject(run.input), "session_id")});
}

}  // namespace

MessageFlow::MessageFlow(work::Platform platform, Keeper& keeper, work::Sandboxes& sandboxes,
                         work::Checkouts& checkouts, work::GitDesk& desk, work::AgentLoop& loop,
                         std::vector<std::string> model_routes)
    : platform_(platform),
      keeper_(keeper),
      sandboxes_(sandboxes),
      checkouts_(checkouts),
      desk_(desk),
      loop_(loop),
      model_routes_(std::move(model_routes)) {}

flow::StepDefinition MessageFlow::Make(std::string name, Step step,
                                       std::chrono::milliseconds timeout) {
  flow::StepDefinition made;
  made.name = std::move(name);
  made.timeout = timeout;
  made.run = [this, step](StepContext context) { return Run(step, std::move(context)); };
  return made;
}

flow::Definition MessageFlow::DefineSession() {
  flow::Definition definition{.name = "session", .version = kVersion};
  flow::StepDefinition provision;
  provision.name = "provision";
  provision.timeout = std::chrono::seconds(platform_.config.session_provision_wait_s);
  provision.run = [this](StepContext context) { return Provision(std::move(context)); };
  definition.steps.push_back(std::move(provision));
  definition.finished = [this](Transaction& tx, const RunRow& run) {
    return ProvisionEnded(tx, run);
  };
  work::SetHome(definition, platform_.log, SandboxesOf);
  return definition;
}

flow::Definition MessageFlow::DefineMessage() {
  const Config& config = platform_.config;
  auto open = std::chrono::seconds(config.session_provision_wait_s);
  // Each git operation is tried several times, with waits in between.
  auto git = std::chrono::milliseconds(config.git_timeout_ms * (config.git_attempts + 1));
  auto clone = std::chrono::milliseconds(config.clone_timeout_ms * (config.git_attempts + 1));
  auto github = std::chrono::milliseconds(config.github_timeout_ms * 4);
  // An agent's own limit is kept in the sandbox; this one only ends what escaped it.
  auto agent = std::chrono::seconds(std::max<int64_t>(config.agent_timeout_s, 86'400) + 600);
  flow::Definition definition{.name = "message", .version = kVersion};
  definition.steps = {Make("prepare", &MessageFlow::Prepare, open + clone + git),
                      Make("agent", &MessageFlow::Work, open + clone + agent),
                      Make("commit", &MessageFlow::Commit, open + clone + git),
                      Make("publish", &MessageFlow::Publish, open + clone + git + github),
                      Make("finish", &MessageFlow::Finish, open)};
  definition.steps.back().always = true;
  definition.finished = [this](Transaction& tx, const RunRow& run) {
    return EndMessage(tx, platform_, run);
  };
  work::SetHome(definition, platform_.log, SandboxesOf);
  definition.changed = [this](Transaction& tx, const RunRow& run, const StepRow*) {
    return Changed(tx, run);
  };
  return definition;
}

Result<MessageFlow::Scene> MessageFlow::Load(Transaction& tx, const StepContext& context) const {
  Scene scene;
  std::string message_id = TextOf(context.input, "message_id");
  TRY_ASSIGN(scene.session, NeedSession(tx, "", TextOf(context.input, "session_id")));
  TRY_ASSIGN(scene.message, tx.Need<MessageRow>(message_id, "message"));
  TRY_ASSIGN(scene.answer, tx.Need<MessageRow>(context.execution_id, "answer"));
  // A run that was redriven after its end would work beside the one that has its turn now.
  if (scene.message.state != "running" || scene.message.run_id != context.run_id)
    return Fail(Code::kFailedPrecondition, "the message is {}; send it again", scene.message.state);
  if (context.step == "finish") return scene;  // also without its agent
  TRY_ASSIGN(scene.agent, work::NeedAgent(tx, scene.session.owner_id, scene.session.agent_id));
  scene.config = work::ParseObject(scene.agent.config);
  if (!scene.session.model.empty()) scene.config["model"] = scene.session.model;
  TRY_ASSIGN(scene.earlier, tx.List(Select<MessageRow>()
                                        .Eq(&MessageRow::session_id, scene.session.id)
                                        .Less(&MessageRow::seq, scene.message.seq)
                                        .NotEq(&MessageRow::role, "system")
                                        .Order(&MessageRow::seq, true)
                                        .Limit(kEarlier)));
  std::ranges::reverse(scene.earlier);
  return scene;
}

Task<Outcome> MessageFlow::Run(Step step, StepContext context) {
  auto scene =
      co_await platform_.store.Read([this, context](Transaction& tx) { return Load(tx, context); });
  if (!scene) co_return Outcome::Failed(scene.error());
  std::string name = context.step;
  auto outcome = co_await (this->*step)(std::move(context), std::move(*scene));
  if (outcome) co_return std::move(*outcome);
  LogInfo("a step of a message failed", {{"step", name}, {"error", outcome.error().message()}});
  co_return Outcome::Failed(outcome.error());
}

Task<Outcome> MessageFlow::Provision(StepContext context) {
  auto opened = co_await keeper_.Open(TextOf(context.input, "session_id"), "created");
  if (!opened) co_return Outcome::Failed(opened.error());
  co_return Outcome::Done({{"sandbox_id", opened->sandbox.id}});
}

Status MessageFlow::ProvisionEnded(Transaction& tx, const RunRow& run) {
  if (run.state == "succeeded") return {};
  auto session = NeedSession(tx, "", TextOf(work::ParseObject(run.input), "session_id"));
  if (!session) return {};  // it was deleted meanwhile
  if (session->status != "provisioning") return {};
  return SetStatus(tx, platform_, *session, {"error", "created", run.error});
}

Status MessageFlow::Changed(Transaction& tx, const RunRow& run) {
  if (run.state != "waiting" || run.error_class != "user_action") return {};
  auto session = NeedSession(tx, "", TextOf(work::ParseObject(run.input), "session_id"));
  if (!session) return {};
  TRY_ASSIGN(auto answer, tx.Get<MessageRow>(run.execution_id));
  if (!answer || answer->error == run.error) return {};
  answer->error = run.error;
  return SaveMessage(tx, platform_, *session, *answer);
}

}  // namespace caisson::session

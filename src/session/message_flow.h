// The workflows of sessions. "session": its sandbox is made, behind the answer to whoever made the
// session. "message": prepare, agent, commit, publish, finish; one run per message.
// docs/sessions.md tells what each step does, and why doing it twice does no harm.
#pragma once

#include <boost/json/object.hpp>

#include "flow/engine.h"
#include "session/answer.h"
#include "session/keeper.h"
#include "store/work_rows.h"
#include "work/agent_loop.h"
#include "work/agent_output.h"
#include "work/checkouts.h"
#include "work/detached_process.h"

namespace caisson::session {

namespace json = boost::json;

class MessageFlow {
 public:
  static constexpr int64_t kVersion = 1;

  // `model_routes`: the names of those that the broker has. All outlive it.
  MessageFlow(work::Platform platform, Keeper& keeper, work::Sandboxes& sandboxes,
              work::Checkouts& checkouts, work::GitDesk& desk, work::AgentLoop& loop,
              std::vector<std::string> model_routes);

  // For flow::Engine::Define(); both refer to this object.
  flow::Definition DefineSession();
  flow::Definition DefineMessage();

 private:
  // What a step knows.
  struct Scene {
    store::SessionRow session;
    store::MessageRow message, answer;
    store::AgentRow agent;
    json::object config;  // of the agent, with the session's model
    std::vector<store::MessageRow> earlier;
  };
  // Where the agent works.
  struct Place {
    std::string sandbox_id, path, branch, base, head_sha;
    std::string own_branch;  // that the server made or the user named, whatever is checked out now
  };
  using Step = Task<Result<flow::Outcome>> (MessageFlow::*)(flow::StepContext, Scene);

  flow::StepDefinition Make(std::string name, Step step, std::chrono::milliseconds timeout);
  Task<flow::Outcome> Run(Step step, flow::StepContext context);
  Result<Scene> Load(store::Transaction& tx, const flow::StepContext& context) const;

  Task<flow::Outcome> Provision(flow::StepContext context);
  Task<Result<flow::Outcome>> Prepare(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Work(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Commit(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Publish(flow::StepContext context, Scene scene);
  Task<Result<flow::Outcome>> Finish(flow::StepContext context, Scene scene);

  // The session's sandbox runs, or has had its time (session_provision_wait_s).
  Task<Status> AwaitSandbox(store::SessionRow session);
  // The session's sandbox runs, and the session's branch is checked out in it.
  Task<Result<Place>> Ready(Scene scene);
  Task<Result<Place>> Checkout(Scene scene, std::string sandbox_id);
  Task<Status> OpenBroker(Scene scene, Place place);
  Result<sdk::Command> MakeCommand(const Scene& scene, const Place& place) const;
  Task<Result<sdk::CommandResult>> RunAgent(Scene scene, Place place, sdk::Command command,
                                            work::OnText on_text);
  // Until then the agent has nothing to spend: the sandbox is put away, and the step waits.
  Task<Result<flow::Outcome>> Sleep(Scene scene, Time until);
  flow::Outcome AgentEnded(const Scene& scene, const Place& place, const sdk::CommandResult& result,
                           const work::AgentReport& report, const Answer& answer);
  // The sandbox with the agent's work; kDataLoss if it is gone.
  Task<Result<Place>> Return(flow::StepContext context, Scene scene);

  Status ProvisionEnded(store::Transaction& tx, const store::RunRow& run);
  // A run that waits for its user says so in the answer.
  Status Changed(store::Transaction& tx, const store::RunRow& run);

  work::Platform platform_;
  Keeper& keeper_;
  work::Sandboxes& sandboxes_;
  work::Checkouts& checkouts_;
  work::GitDesk& desk_;
  work::AgentLoop& loop_;
  std::vector<std::string> model_routes_;
};

}  // namespace caisson::session

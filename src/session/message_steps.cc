// The steps of a message. Each may be run again from its beginning.
#include <boost/json/serialize.hpp>

#include "base/log.h"
#include "git/broker.h"
#include "git/commit_message.h"
#include "session/delta_teller.h"
#include "session/event.h"
#include "session/message_flow.h"
#include "session/messages.h"
#include "session/options.h"
#include "session/prompt.h"
#include "session/status.h"
#include "work/costs.h"
#include "work/json_fields.h"

namespace caisson::session {
namespace {

using flow::Outcome;
using flow::StepContext;
using store::MessageRow;
using store::SessionRow;
using store::Transaction;
using work::TextOf;

constexpr size_t kMaxStderr = 2'000;
constexpr size_t kMaxTitle = 70;
constexpr std::chrono::milliseconds kShortestSleep{1'000};

const json::object& ResultOf(const StepContext& context, const std::string& step) {
  static const json::object kNone;
  auto found = context.results.find(step);
  return found == context.results.end() ? kNone : found->second;
}

// Changes the answer in the transaction of the outcome.
template <class Change>
std::function<Status(Transaction&)> OnAnswer(std::string id, Change change) {
  return [id = std::move(id), change = std::move(change)](Transaction& tx) -> Status {
    TRY_ASSIGN(auto answer, tx.Get<MessageRow>(id));
    if (!answer) return {};
    TRY(change(tx, *answer));
    return tx.Update(*answer);
  };
}

std::string AgentName(const MessageRow& answer) { return "answer-" + answer.id; }

std::string FirstLine(const std::string& text) {
  return work::Shorten(text.substr(0, text.find('\n')), kMaxTitle);
}

std::string ErrorOf(const sdk::CommandResult& result, const work::AgentReport& report) {
  if (result.timed_out) return "the agent did not come to an end in its time";
  if (result.exit_code == 0 || !report.error.empty()) return report.error;
  return fmt::format("the agent ended with status {}: {}", result.exit_code,
                     work::Shorten(result.stderr_text, kMaxStderr));
}

}  // namespace

// ---- getting ready -----------------------------------------------------------------------------

Task<Result<MessageFlow::Place>> MessageFlow::Ready(Scene scene) {
  CO_TRY_ASSIGN(auto opened, co_await keeper_.Open(scene.session.id, "message"));
  Place place{.sandbox_id = opened.sandbox.id};
  if (!scene.session.repo_url.empty()) {
    CO_TRY_ASSIGN(place, co_await Checkout(scene, opened.sandbox.id));
  }
  CO_TRY(co_await OpenBroker(scene, place));
  co_return place;
}

Task<Result<MessageFlow::Place>> MessageFlow::Checkout(Scene scene, std::string sandbox_id) {
  const SessionRow& session = scene.session;
  work::GitDesk::Place desk{session.owner_id, sandbox_id, session.repo_url};
  CO_TRY_ASSIGN(git::Repository repository,
                git::ParseRepository(session.repo_url, platform_.config.github_url));
  CO_TRY_ASSIGN(auto state, co_await sandboxes_.Get(session.owner_id, sandbox_id));
  Place place{.sandbox_id = sandbox_id, .path = checkouts_.PathOf(sandbox_id, repository)};
  // In a sandbox that has it the user may have changed it: it stays as it is.
  if (state.row.branch_name.empty()) {
    CO_TRY_ASSIGN(auto cloned, co_await desk_.Clone(desk, session.repo_url, session.base_branch,
                                                    platform_.config.clone_depth));
    CO_TRY(co_await desk_.Branch(desk, BranchFor(session, platform_.config), cloned.branch));
    CO_TRY_ASSIGN(state, co_await sandboxes_.Get(session.owner_id, sandbox_id));
  }
  place.own_branch = state.row.branch_name;
  if (session.branch.empty())
    CO_TRY(co_await platform_.store.Write(
        [id = session.id, name = place.own_branch](Transaction& tx) -> Status {
          TRY_ASSIGN(SessionRow row, NeedSession(tx, "", id));
          row.branch = name;
          return tx.Update(row);
        }));
  CO_TRY_ASSIGN(auto status, co_await desk_.Status(desk));
  place.branch = status.branch;
  place.head_sha = status.head_sha;
  place.base = state.row.base_branch;
  co_return place;
}

Task<Status> MessageFlow::OpenBroker(Scene scene, Place place) {
  if (model_routes_.empty() && scene.session.repo_url.empty()) co_return Status();
  // Without one the broker is there for the models only.
  git::Repository repository = git::ScratchRepository(platform_.config.github_url);
  if (!scene.session.repo_url.empty()) {
    CO_TRY_ASSIGN(repository,
                  git::ParseRepository(scene.session.repo_url, platform_.config.github_url));
  }
  // SECURITY: what is checked out is the agent's choice, and must not be what it may push.
  co_return co_await checkouts_.Grant({.owner_id = scene.session.owner_id,
                                       .sandbox_id = place.sandbox_id,
                                       .session_id = scene.session.id},
                                      std::move(repository), place.own_branch);
}

// Somebody waits for the answer: what took too long is told, and not begun anew.
Task<Status> MessageFlow::AwaitSandbox(SessionRow session) {
  std::chrono::seconds wait(platform_.config.session_provision_wait_s);
  auto end = std::chrono::steady_clock::now() + wait;
  auto opened =
      co_await WithDeadline(wait, "waiting for the sandbox", keeper_.Open(session.id, "message"));
  if (opened) co_return Status();
  if (opened.error().code() != Code::kDeadlineExceeded || std::chrono::steady_clock::now() < end)
    co_return tl::unexpected(std::move(opened).error());
  std::string why =
      fmt::format("provision_timeout: the sandbox was not there after {} s; send the message again",
                  wait.count());
  CO_TRY(co_await platform_.store.Write([=, this](Transaction& tx) -> Status {
    TRY_ASSIGN(SessionRow now, NeedSession(tx, "", session.id));
    if (now.status != "provisioning") return {};
    return SetStatus(tx, platform_, now, {"error", "message", why});
  }));
  co_return Fail(Code::kFailedPrecondition, "{}", why);
}

Task<Result<Outcome>> MessageFlow::Prepare(StepContext, Scene scene) {
  CO_TRY(co_await AwaitSandbox(scene.session));
  CO_TRY_ASSIGN(Place place, co_await Ready(std::move(scene)));
  co_return Outcome::Done({{"sandbox_id", place.sandbox_id},
                           {"branch", place.branch},
                           {"base", place.base},
                           {"head_sha", place.head_sha}});
}

// ---- the agent ---------------------------------------------------------------------------------

Result<sdk::Command> MessageFlow::MakeCommand(const Scene& scene, const Place& place) const {
  const work::Adapter* adapter = work::FindAdapter(scene.agent.adapter);
  if (!adapter)
    return Fail(Code::kFailedPrecondition, "the agent {} does not work in sandboxes of this server",
                scene.agent.name);
  int64_t limit = work::IntOf(scene.config, "timeout_s");
  work::AgentJob job{
      .config = scene.config,
      .title = FirstLine(scene.message.content),
      .prompt = PromptFor({.text = scene.message.content,
                           .mode = scene.message.mode,
                           .branch = place.branch,
                           .instructions = TextOf(scene.config, "instructions"),
                           .earlier = scene.earlier}),
      .execution_id = scene.answer.id,
      .workdir = place.path,
      .timeout = std::chrono::seconds(limit > 0 ? limit : platform_.config.agent_timeout_s),
      .partial = true,
      .model_routes = model_routes_,
      .model_url = &git::Broker::ModelUrl};
  TRY_ASSIGN(sdk::Command command, adapter->MakeCommand(job));
  command.env["CAISSON_SESSION_ID"] = scene.session.id;
  command.env["CAISSON_MESSAGE"] = scene.message.content;
  command.env["CAISSON_MODE"] = scene.message.mode;
  if (!scene.session.model.empty()) command.env["CAISSON_MODEL"] = scene.session.model;
  return command;
}

Task<Result<sdk::CommandResult>> MessageFlow::RunAgent(Scene scene, Place place,
                                                       sdk::Command command, work::OnText on_text) {
  CO_TRY_ASSIGN(auto connection,
                co_await sandboxes_.Connect(scene.session.owner_id, place.sandbox_id));
  if (work::AgentLoop::Runs(command))
    co_return co_await loop_.Run({.owner_id = scene.session.owner_id,
                                  .execution_id = scene.answer.id,
                                  .sandbox_id = place.sandbox_id,
                                  .agent_id = scene.agent.id},
                                 connection.envd, std::move(command), std::move(on_text));
  work::CommandRunner run = [&connection](sdk::Command one) {
    return connection.envd.Run(std::move(one));
  };
  co_return co_await work::RunDetached(std::move(run), AgentName(scene.answer), std::move(command));
}

Task<Result<Outcome>> MessageFlow::Work(StepContext, Scene scene) {
  CO_TRY_ASSIGN(Place place, co_await Ready(scene));
  CO_TRY_ASSIGN(sdk::Command command, MakeCommand(scene, place));
  scene.session.sandbox_id = place.sandbox_id;
  work::OutputPosition output_told;
  ToldText text_told;
  CO_TRY(co_await platform_.store.Read([&](Transaction& tx) -> Status {
    TRY_ASSIGN(output_told, work::ToldOutput(tx, scene.answer.id, place.sandbox_id));
    TRY_ASSIGN(text_told, ReadTold(tx, scene.answer.id));
    return {};
  }));
  Answer answer;
  auto make_event = [&scene](std::string type, json::object data) {
    return About(scene.session, scene.answer, std::move(type), std::move(data));
  };
  DeltaTeller teller(platform_.log.redactor(), std::move(text_told), place.sandbox_id,
                     [&](json::object data) {
                       data["message_id"] = scene.answer.id;
                       platform_.log.Gather(make_event("message_delta", std::move(data)));
                     });
  auto listen = [&](const work::AgentEvent& event) {
    answer.Add(event);
    if (event.kind == work::AgentEvent::Kind::kDelta) teller.Add(event.text, event.first);
    if (event.kind == work::AgentEvent::Kind::kMessage) teller.End(event.text);
  };
  work::AgentOutput output(platform_, *work::FindAdapter(scene.agent.adapter), output_told,
                           make_event, listen);
  command.on_output = [&output](sdk::Stream stream, std::string_view piece) {
    output.Take(stream, piece);
  };
  auto ended = co_await RunAgent(
      scene, place, std::move(command),
      [&teller](std::string_view piece, bool first) { teller.Add(piece, first); });
  co_await platform_.log.Flush();
  if (!ended) co_return tl::unexpected(std::move(ended).error());
  work::AgentReport report = output.Finish();
  if (report.sleeps_until) co_return co_await Sleep(scene, *report.sleeps_until);
  co_return AgentEnded(scene, place, *ended, report, answer);
}

// Only time wakes it: nobody sends what it waits for.
Task<Result<Outcome>> MessageFlow::Sleep(Scene scene, Time until) {
  CO_TRY(co_await keeper_.Rest(scene.session.id, std::string(kResting)));
  auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - Now());
  co_return Outcome::Wait("sleep:" + scene.answer.id, std::max(wait, kShortestSleep));
}

Outcome MessageFlow::AgentEnded(const Scene& scene, const Place& place,
                                const sdk::CommandResult& result, const work::AgentReport& report,
                                const Answer& answer) {
  Outcome outcome = Outcome::Done({{"sandbox_id", place.sandbox_id}});
  if (std::string error = ErrorOf(result, report); !error.empty())
    outcome = Outcome::Failed(Error(Code::kUnknown, error));
  const events::Redactor& redactor = platform_.log.redactor();
  store::CostRow cost{.id = scene.answer.id + ":model",
                      .owner_id = scene.session.owner_id,
                      .execution_id = scene.answer.id,
                      .sandbox_id = place.sandbox_id,
                      .kind = "model",
                      .model = report.usage.model,
                      .tokens_in = report.usage.tokens_in,
                      .tokens_out = report.usage.tokens_out,
                      .dollars = report.usage.dollars,
                      .at = Now()};
  outcome.also =
      OnAnswer(scene.answer.id,
               [this, cost, recorded = report.usage.recorded,
                text = redactor.Redact(answer.Text(report, result.stdout_text)),
                parts = redactor.Redact(json::serialize(answer.parts()))](
                   Transaction& tx, MessageRow& row) -> Status {
                 row.content = text;
                 row.parts = parts;
                 if (!cost.model.empty()) row.model = cost.model;
                 row.tokens_in = cost.tokens_in;
                 row.tokens_out = cost.tokens_out;
                 row.dollars = cost.dollars;
                 if (recorded || (cost.tokens_in + cost.tokens_out == 0 && cost.dollars == 0))
                   return {};
                 return work::RecordCost(tx, platform_, cost);
               });
  return outcome;
}

// ---- what becomes of the work ------------------------------------------------------------------

Task<Result<MessageFlow::Place>> MessageFlow::Return(StepContext context, Scene scene) {
  CO_TRY_ASSIGN(Place place, co_await Ready(std::move(scene)));
  if (place.sandbox_id != TextOf(ResultOf(context, "agent"), "sandbox_id"))
    co_return Fail(Code::kDataLoss, "the sandbox with the agent's work is gone; send it again");
  co_return place;
}

Task<Result<Outcome>> MessageFlow::Commit(StepContext context, Scene scene) {
  const SessionRow& session = scene.session;
  if (session.repo_url.empty() || scene.message.mode == "plan" ||
      !Commits(session, platform_.config))
    co_return Outcome::Done({{"skipped", true}});
  CO_TRY_ASSIGN(Place place, co_await Return(context, scene));
  work::GitDesk::Place desk{session.owner_id, place.sandbox_id, session.repo_url};
  std::vector<std::string> patterns;
  if (const work::Adapter* adapter = work::FindAdapter(scene.agent.adapter))
    for (const std::string& one : adapter->Litter()) patterns.push_back(":(exclude,glob)**/" + one);
  if (!patterns.empty()) patterns.insert(patterns.begin(), ".");
  CO_TRY(co_await desk_.Stage(desk, patterns));
  std::string message = git::SuggestCommitMessage(FirstLine(scene.message.content)) +
                        "\n\nCaisson-Session: " + session.id +
                        "\nCaisson-Message: " + scene.message.id;
  CO_TRY(co_await desk_.Commit(desk, {.message = message,
                                      .author_name = TextOf(scene.config, "git_user_name"),
                                      .author_email = TextOf(scene.config, "git_user_email"),
                                      .stage_all = false}));
  // The agent's own commits count as much as ours, and so do those of an attempt before this one.
  CO_TRY_ASSIGN(auto status, co_await desk_.Status(desk));
  std::string sha = status.head_sha;
  if (sha == TextOf(ResultOf(context, "prepare"), "head_sha")) sha.clear();
  Outcome outcome = Outcome::Done({{"sha", sha}, {"branch", status.branch}});
  outcome.also = OnAnswer(scene.answer.id, [sha](Transaction&, MessageRow& row) -> Status {
    row.commit_sha = sha;
    return {};
  });
  co_return outcome;
}

Task<Result<Outcome>> MessageFlow::Publish(StepContext context, Scene scene) {
  const SessionRow& session = scene.session;
  std::string branch = TextOf(ResultOf(context, "commit"), "branch");
  if (TextOf(ResultOf(context, "commit"), "sha").empty() || branch.empty() ||
      branch == TextOf(ResultOf(context, "prepare"), "base") || !CanPush(session, platform_.config))
    co_return Outcome::Done({{"skipped", true}});
  CO_TRY_ASSIGN(Place place, co_await Return(context, scene));
  if (branch != place.own_branch)
    co_return Outcome::Done(
        {{"skipped", true}, {"reason", branch + " is not the session's branch"}});
  work::GitDesk::Place desk{session.owner_id, place.sandbox_id, session.repo_url};
  CO_TRY_ASSIGN(auto pushed, co_await desk_.Push(desk, branch));
  Outcome outcome = Outcome::Done({{"sha", pushed.sha}});
  if (session.pull_request_number > 0 || !OpensPullRequest(session, platform_.config))
    co_return outcome;
  CO_TRY_ASSIGN(auto made,
                co_await desk_.OpenPullRequest(desk, {.title = session.title, .draft = true}));
  outcome.also = [this, id = session.id, opened = made.pull_request](Transaction& tx) -> Status {
    auto row = NeedSession(tx, "", id);
    if (!row) return {};  // it was deleted meanwhile
    row->pull_request_number = opened.number;
    row->pull_request_url = opened.url;
    row->pull_request_state = opened.draft ? "draft" : "open";
    TRY(tx.Update(*row));
    TRY(platform_.log.Emit(tx, About(*row, "session_updated", SessionData(*row))));
    return {};
  };
  co_return outcome;
}

Task<Result<Outcome>> MessageFlow::Finish(StepContext context, Scene scene) {
  // One that sleeps or is gone has no agent that works.
  CO_TRY_ASSIGN(auto row, co_await sandboxes_.FindByHolder("session", scene.session.id));
  if (!row || row->status != "running") co_return Outcome::Done();
  CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect(scene.session.owner_id, row->id));
  work::CommandRunner run = [&connection](sdk::Command one) {
    return connection.envd.Run(std::move(one));
  };
  std::string name = AgentName(scene.answer), user = sdk::Command().user;
  // What an agent left running that came to its end is the user's: a server, say.
  if (!context.results.contains("agent")) CO_TRY(co_await work::EndDetached(run, name, user));
  (void)co_await work::ForgetDetached(run, name, user);
  co_return Outcome::Done();
}

}  // namespace caisson::session

// Sessions: a conversation with one sandbox that is made, paused and resumed for it.
#pragma once

#include <boost/json/object.hpp>
#include <optional>

#include "session/keeper.h"
#include "session/messages.h"
#include "store/work_rows.h"
#include "work/offered_models.h"
#include "work/start_limit.h"

namespace caisson::session {

namespace json = boost::json;

struct NewSession {
  std::string title;  // "" = from the first message
  std::string repo_url, base_branch, agent_id, model, template_name;
  json::object options;        // commit, pull_request, branch_name, env
  std::string message;         // the first one, "" = none yet
  std::string mode = "build";  // of it
};
struct SessionChange {
  std::optional<std::string> title, agent_id, model;
  std::optional<bool> archived;
};
struct SessionFilter {
  std::vector<std::string> statuses;  // empty = all but archived ones
  std::string repo, text;             // part of it; "" = any
  work::Page page;
};
// A session and what happens in it now.
struct SessionView {
  store::SessionRow row;
  std::string answering;  // the id of the answer that is being written, "" if none is
  int64_t queued = 0;     // messages that wait
  std::optional<Exchange> first = std::nullopt;  // of Create() with a message
};
// A model that a session can have, as far as this server knows them.
struct Model {
  std::string name;
  std::vector<store::AgentRow> agents;  // that are set to it
  bool builds = false;                  // it writes builds (llm_model)
  bool offered = false;                 // by the server at llm_base_url
};
struct History {
  std::vector<store::MessageRow> messages;  // oldest first
  bool more = false;                        // there are earlier ones
};

class Sessions {
 public:
  // All outlive it.
  Sessions(asio::any_io_executor executor, work::Platform platform, Keeper& keeper,
           work::StartLimit& starts, work::OfferedModels& models)
      : platform_(platform),
        keeper_(keeper),
        starts_(starts),
        models_(models),
        operations_(std::move(executor)) {}
  Task<void> Stop();

  // Answers at once; the sandbox is made behind it. A first message counts like one of Send().
  // kInvalidArgument: the fields; a model that the agent's server does not offer.
  Task<Result<SessionView>> Create(std::string owner_id, NewSession session);
  // Last used first.
  Task<Result<work::Listed<SessionView>>> List(std::string owner_id, SessionFilter filter);
  Task<Result<SessionView>> Get(std::string owner_id, std::string id);
  // kFailedPrecondition: agent and model cannot be changed while an answer is being written.
  Task<Result<SessionView>> Update(std::string owner_id, std::string id, SessionChange change);
  // By name: those of the user's agents, the server's own, and what llm_base_url offers.
  Task<Result<std::vector<Model>>> Models(std::string owner_id);
  // Its sandbox is killed, its messages are gone. Goes on after a crash.
  Task<Status> Delete(std::string owner_id, std::string id);
  // What Delete() of a server that was killed has left.
  Task<Status> FinishDelete(std::string id);

  // kResourceExhausted: too many wait in this session, or too much was started in the last minute.
  Task<Result<Exchange>> Send(std::string owner_id, std::string id, std::string text,
                              std::string mode);
  // The last `limit` ones before place `before` (0 = the end).
  Task<Result<History>> Messages(std::string owner_id, std::string id, int64_t before,
                                 int64_t limit);
  // With `all` also what waits. kFailedPrecondition: there is nothing to stop.
  Task<Status> StopAnswer(std::string owner_id, std::string id, bool all);

  // ---- its sandbox; these go on when the caller is canceled ------------------------------
  // kDeadlineExceeded "provision_timeout": not there after session_provision_wait_s.
  Task<Result<Keeper::Opened>> Provision(std::string owner_id, std::string id);
  Task<Status> Pause(std::string owner_id, std::string id);
  Task<Result<work::SandboxState>> Look(std::string owner_id, std::string id);

 private:
  Result<SessionView> View(store::Transaction& tx, store::SessionRow row) const;
  Result<store::SessionRow> Insert(store::Transaction& tx, const std::string& owner_id,
                                   const NewSession& session);
  Task<Status> Owned(std::string owner_id, std::string id);
  // kInvalidArgument: the agent's answers come from a server that has no such model.
  Task<Status> CheckModel(std::string owner_id, std::string agent_id, std::string model);

  work::Platform platform_;
  Keeper& keeper_;
  work::StartLimit& starts_;
  work::OfferedModels& models_;
  TaskGroup operations_;
};

}  // namespace caisson::session

// Squads: agents that work together, on one repository by default, and stop together.
#pragma once

#include "store/work_rows.h"
#include "work/platform.h"

namespace caisson::work {

struct NewMember {
  std::string agent_id;
  std::string role;
};
struct NewSquad {
  std::string id = {};  // "" = a random one; a squad that has it already is the answer
  std::string name, description, repo_url;
  std::vector<NewMember> members;
};
struct SquadChange {  // only what is set is changed
  std::optional<std::string> name, description, repo_url;
  std::optional<std::vector<NewMember>> members;  // all of them
};
// A member with what it does now.
struct Member {
  store::SquadMemberRow row;
  store::AgentRow agent;
  std::optional<store::TaskRow> task;  // of the agent; its repository is known
};
struct Squad {
  store::SquadRow row;
  std::vector<Member> members;
};

class Squads {
 public:
  explicit Squads(Platform platform) : platform_(platform) {}

  Task<Result<Squad>> Create(std::string owner_id, NewSquad squad);
  // Owner "": everybody's, for an administrator.
  Task<Result<Listed<Squad>>> List(std::string owner_id, Page page);
  Task<Result<Squad>> Get(std::string owner_id, std::string id);
  Task<Result<Squad>> Update(std::string owner_id, std::string id, SquadChange change);
  Task<Status> Delete(std::string owner_id, std::string id);
  // While it is paused none of its tasks starts, and those that run stop before their next step.
  Task<Result<Squad>> Pause(std::string owner_id, std::string id);
  Task<Result<Squad>> Resume(std::string owner_id, std::string id);

 private:
  Platform platform_;
};

Result<store::SquadRow> NeedSquad(store::Transaction& tx, const std::string& owner_id,
                                  const std::string& id);
// Before a task starts: one without a repository gets its squad's. kFailedPrecondition: the squad
// is paused, so nothing of it starts.
Status TakeFromSquad(store::Transaction& tx, store::TaskRow& task);
// The signal that a run waits for while its task or its squad is paused.
std::string ResumeKey(const std::string& run_id);
// Sends it to an execution that waits for it.
Status WakePaused(store::Transaction& tx, Platform& platform, const store::ExecutionRow& execution);

}  // namespace caisson::work

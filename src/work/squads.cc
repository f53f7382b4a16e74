#include "work/squads.h"

#include <set>

#include "base/id.h"
#include "git/repository.h"
#include "work/agents.h"
#include "work/event.h"
#include "work/executions.h"
#include "work/json_fields.h"
#include "work/paging.h"

namespace caisson::work {
namespace {

using store::Select;
using store::SquadMemberRow;
using store::SquadRow;
using store::Transaction;

constexpr size_t kMaxName = 100, kMaxMembers = 100;

Status Check(const SquadRow& squad, const Config& config) {
  TRY(CheckText(squad.name, "the name of a squad", 1, kMaxName));
  TRY(CheckText(squad.description, "the description of a squad", 0,
                static_cast<size_t>(config.api_max_string)));
  if (!squad.repo_url.empty()) TRY(git::ParseRepository(squad.repo_url, config.github_url));
  return {};
}

Status SetMembers(Transaction& tx, const SquadRow& squad, const std::vector<NewMember>& members) {
  if (members.size() > kMaxMembers)
    return Fail(Code::kInvalidArgument, "a squad has at most {} members", kMaxMembers);
  TRY(tx.Delete(Select<SquadMemberRow>().Eq(&SquadMemberRow::squad_id, squad.id)));
  std::set<std::string> seen;
  for (const NewMember& member : members) {
    if (!seen.insert(member.agent_id).second)
      return Fail(Code::kInvalidArgument, "the agent {} is named twice", member.agent_id);
    TRY(CheckText(member.role, "the role of a member", 0, kMaxName));
    TRY_ASSIGN(auto agent, NeedAgent(tx, squad.owner_id, member.agent_id));
    TRY(tx.Insert(SquadMemberRow{.id = squad.id + ":" + agent.id,
                                 .squad_id = squad.id,
                                 .agent_id = agent.id,
                                 .role = member.role.empty() ? agent.role : member.role,
                                 .created_at = Now()}));
  }
  return {};
}

// What the agent works on, with the repository that a run of it takes.
Result<std::optional<store::TaskRow>> CurrentTask(Transaction& tx, const store::AgentRow& agent) {
  if (!agent.current_task_id) return std::nullopt;
  TRY_ASSIGN(auto task, tx.Get<store::TaskRow>(*agent.current_task_id));
  if (task && task->repo_url.empty() && task->squad_id) {
    TRY_ASSIGN(auto squad, tx.Get<SquadRow>(*task->squad_id));
    if (squad) task->repo_url = squad->repo_url;
  }
  return task;
}

Result<Squad> WithMembers(Transaction& tx, SquadRow row) {
  Squad squad{.row = std::move(row)};
  TRY_ASSIGN(auto members, tx.List(Select<SquadMemberRow>()
                                       .Eq(&SquadMemberRow::squad_id, squad.row.id)
                                       .Order(&SquadMemberRow::created_at)
                                       .Order(&SquadMemberRow::id)));
  for (SquadMemberRow& member : members) {
    TRY_ASSIGN(auto agent, tx.Need<store::AgentRow>(member.agent_id, "agent"));
    TRY_ASSIGN(auto task, CurrentTask(tx, agent));
    squad.members.push_back({std::move(member), std::move(agent), std::move(task)});
  }
  return squad;
}

json::object SquadData(const SquadRow& squad) {
  return {{"name", squad.name}, {"paused", squad.paused_at.has_value()}};
}

}  // namespace

std::string ResumeKey(const std::string& run_id) { return "resume:" + run_id; }

Status WakePaused(Transaction& tx, Platform& platform, const store::ExecutionRow& execution) {
  // A signal that nobody waits for would be kept, and end the next pause.
  std::string key = ResumeKey(execution.run_id);
  TRY_ASSIGN(auto step, tx.First(Select<store::StepRow>()
                                     .Eq(&store::StepRow::wait_key, key)
                                     .Eq(&store::StepRow::state, "waiting")));
  if (step) TRY(platform.flow.Signal(tx, key, {}));
  return {};
}

Result<SquadRow> NeedSquad(Transaction& tx, const std::string& owner_id, const std::string& id) {
  TRY_ASSIGN(auto squad, tx.Get<SquadRow>(id));
  if (!squad || squad->owner_id != owner_id)
    return Fail(Code::kNotFound, "there is no squad {}", id);
  return std::move(*squad);
}

Status TakeFromSquad(Transaction& tx, store::TaskRow& task) {
  if (!task.squad_id) return {};
  TRY_ASSIGN(SquadRow squad, NeedSquad(tx, task.owner_id, *task.squad_id));
  if (squad.paused_at)
    return Fail(Code::kFailedPrecondition, "the squad {} is paused; resume it first", squad.name);
  if (task.repo_url.empty()) task.repo_url = squad.repo_url;
  return {};
}

Task<Result<Squad>> Squads::Create(std::string owner_id, NewSquad squad) {
  SquadRow row{.id = squad.id.empty() ? RandomUuid() : squad.id,
               .owner_id = std::move(owner_id),
               .name = squad.name,
               .description = squad.description,
               .repo_url = squad.repo_url,
               .created_at = Now(),
               .updated_at = Now()};
  CO_TRY(Check(row, platform_.config));
  co_return co_await platform_.store.Write([this, row, squad](Transaction& tx) -> Result<Squad> {
    TRY_ASSIGN(auto made, tx.Get<SquadRow>(row.id));
    if (made) {
      TRY_ASSIGN(SquadRow known, NeedSquad(tx, row.owner_id, row.id));
      return WithMembers(tx, known);
    }
    TRY(tx.Insert(row));
    TRY(SetMembers(tx, row, squad.members));
    TRY(platform_.log.Emit(tx, About(row, "squad_updated", SquadData(row))));
    return WithMembers(tx, row);
  });
}

Task<Result<Listed<Squad>>> Squads::List(std::string owner_id, Page page) {
  co_return co_await platform_.store.Read(
      [owner_id, page](Transaction& tx) -> Result<Listed<Squad>> {
        Select<SquadRow> select;
        if (!owner_id.empty()) select.Eq(&SquadRow::owner_id, owner_id);
        return ListPage(tx, select.Order(&SquadRow::created_at).Order(&SquadRow::id), page,
                        WithMembers);
      });
}

Task<Result<Squad>> Squads::Get(std::string owner_id, std::string id) {
  co_return co_await platform_.store.Read([owner_id, id](Transaction& tx) -> Result<Squad> {
    TRY_ASSIGN(SquadRow row, NeedSquad(tx, owner_id, id));
    return WithMembers(tx, std::move(row));
  });
}

Task<Result<Squad>> Squads::Update(std::string owner_id, std::string id, SquadChange change) {
  co_return co_await platform_.store.Write(
      [this, owner_id, id, change](Transaction& tx) -> Result<Squad> {
        TRY_ASSIGN(SquadRow row, NeedSquad(tx, owner_id, id));
        if (change.name) row.name = *change.name;
        if (change.description) row.description = *change.description;
        if (change.repo_url) row.repo_url = *change.repo_url;
        row.updated_at = Now();
        TRY(Check(row, platform_.config));
        TRY(tx.Update(row));
        if (change.members) TRY(SetMembers(tx, row, *change.members));
        TRY(platform_.log.Emit(tx, About(row, "squad_updated", SquadData(row))));
        return WithMembers(tx, std::move(row));
      });
}

Task<Status> Squads::Delete(std::string owner_id, std::string id) {
  co_return co_await platform_.store.Write([this, owner_id, id](Transaction& tx) -> Status {
    TRY_ASSIGN(SquadRow squad, NeedSquad(tx, owner_id, id));
    TRY_ASSIGN(auto live, LiveExecutions(tx, &store::ExecutionRow::squad_id, id));
    if (!live.empty())
      return Fail(Code::kFailedPrecondition,
                  "{} tasks of this squad are being worked on; cancel them first", live.size());
    TRY(tx.Delete(Select<SquadRow>().Eq(&SquadRow::id, id)));
    TRY(platform_.log.Emit(tx, About(squad, "squad_deleted", SquadData(squad))));
    return {};
  });
}

Task<Result<Squad>> Squads::Pause(std::string owner_id, std::string id) {
  co_return co_await platform_.store.Write([this, owner_id, id](Transaction& tx) -> Result<Squad> {
    TRY_ASSIGN(SquadRow row, NeedSquad(tx, owner_id, id));
    if (!row.paused_at) {
      row.paused_at = row.updated_at = Now();
      TRY(tx.Update(row));
      TRY(platform_.log.Emit(tx, About(row, "squad_updated", SquadData(row))));
    }
    return WithMembers(tx, std::move(row));
  });
}

Task<Result<Squad>> Squads::Resume(std::string owner_id, std::string id) {
  auto resumed =
      co_await platform_.store.Write([this, owner_id, id](Transaction& tx) -> Result<Squad> {
        TRY_ASSIGN(SquadRow row, NeedSquad(tx, owner_id, id));
        if (row.paused_at) {
          row.paused_at.reset();
          row.updated_at = Now();
          TRY(tx.Update(row));
          TRY(platform_.log.Emit(tx, About(row, "squad_updated", SquadData(row))));
          TRY_ASSIGN(auto live, LiveExecutions(tx, &store::ExecutionRow::squad_id, id));
          for (const store::ExecutionRow& execution : live)
            TRY(WakePaused(tx, platform_, execution));
        }
        return WithMembers(tx, std::move(row));
      });
  platform_.flow.Wake();
  co_return resumed;
}

}  // namespace caisson::work

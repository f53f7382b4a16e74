#include "work/agents.h"

#include <boost/json/serialize.hpp>

#include "base/id.h"
#include "work/agent_config.h"
#include "work/event.h"
#include "work/json_fields.h"
#include "work/paging.h"

namespace caisson::work {
namespace {

using store::AgentRow;
using store::Select;
using store::Transaction;

constexpr size_t kMaxName = 100, kMaxUrl = 2'000;

Status Check(const AgentRow& agent) {
  TRY(CheckText(agent.name, "the name of an agent", 1, kMaxName));
  TRY(CheckText(agent.role, "the role of an agent", 0, kMaxName));
  TRY(CheckText(agent.avatar_url, "avatar_url", 0, kMaxUrl));
  if (!agent.avatar_url.empty() && !agent.avatar_url.starts_with("https://") &&
      !agent.avatar_url.starts_with("http://"))
    return Fail(Code::kInvalidArgument, "avatar_url must be an http or https URL");
  return CheckAgentConfig(agent.adapter, ParseObject(agent.config));
}

Result<std::vector<std::string>> MembersOf(Transaction& tx, const std::string& squad_id) {
  TRY_ASSIGN(auto members, tx.List(Select<store::SquadMemberRow>().Eq(
                               &store::SquadMemberRow::squad_id, squad_id)));
  std::vector<std::string> ids;
  for (const store::SquadMemberRow& member : members) ids.push_back(member.agent_id);
  return ids;
}

Status Apply(AgentRow& agent, const AgentChange& change) {
  if (change.name) agent.name = *change.name;
  if (change.role) agent.role = *change.role;
  if (change.adapter) agent.adapter = *change.adapter;
  if (change.config) agent.config = json::serialize(*change.config);
  if (change.avatar_url) agent.avatar_url = *change.avatar_url;
  if (change.adapter && agent.current_task_id)
    return Fail(Code::kFailedPrecondition,
                "the agent {} works on a task; its adapter can be changed when it is done",
                agent.name);
  if (change.paused.value_or(false)) {
    if (agent.current_task_id)
      return Fail(Code::kFailedPrecondition,
                  "the agent {} works on a task; cancel it, or pause the agent when it is done",
                  agent.name);
    agent.status = "paused";
  } else if (change.paused && agent.status == "paused") {
    agent.status = "idle";
  }
  return {};
}

}  // namespace

Result<AgentRow> NeedAgent(Transaction& tx, const std::string& owner_id, const std::string& id) {
  TRY_ASSIGN(auto agent, tx.Get<AgentRow>(id));
  // SECURITY: the same words for one of somebody else.
  if (!agent || agent->owner_id != owner_id)
    return Fail(Code::kNotFound, "there is no agent {}", id);
  return std::move(*agent);
}

bool IsFree(const AgentRow& agent) { return !agent.current_task_id && agent.status != "paused"; }

Status SetAgentStatus(Transaction& tx, Platform& platform, AgentRow& agent,
                      const std::string& status) {
  agent.status = status;
  agent.updated_at = Now();
  TRY(tx.Update(agent));
  TRY(platform.log.Emit(tx, About(agent, "agent_updated", AgentData(agent))));
  return {};
}

Task<Status> Agents::CheckModel(AgentRow agent) {
  if (!AsksOwnServer(agent.adapter)) co_return Status();
  co_return co_await models_.Check(TextOf(ParseObject(agent.config), "model"));
}

Task<Result<AgentRow>> Agents::Create(std::string owner_id, NewAgent agent) {
  AgentRow row{.id = agent.id.empty() ? RandomUuid() : std::move(agent.id),
               .owner_id = std::move(owner_id),
               .name = std::move(agent.name),
               .role = std::move(agent.role),
               .adapter = std::move(agent.adapter),
               .config = json::serialize(agent.config),
               .avatar_url = std::move(agent.avatar_url),
               .created_at = Now(),
               .updated_at = Now()};
  CO_TRY(Check(row));
  CO_TRY(co_await CheckModel(row));
  co_return co_await platform_.store.Write([this, row](Transaction& tx) -> Result<AgentRow> {
    TRY_ASSIGN(auto made, tx.Get<AgentRow>(row.id));
    if (made) return NeedAgent(tx, row.owner_id, row.id);
    TRY(tx.Insert(row));
    TRY(platform_.log.Emit(tx, About(row, "agent_updated", AgentData(row))));
    return row;
  });
}

Task<Result<Listed<AgentRow>>> Agents::List(std::string owner_id, AgentFilter filter) {
  co_return co_await platform_.store.Read(
      [owner_id, filter](Transaction& tx) -> Result<Listed<AgentRow>> {
        Select<AgentRow> select;
        if (!owner_id.empty()) select.Eq(&AgentRow::owner_id, owner_id);
        if (!filter.status.empty()) select.Eq(&AgentRow::status, filter.status);
        if (!filter.adapter.empty()) select.Eq(&AgentRow::adapter, filter.adapter);
        if (!filter.text.empty()) select.Contains(&AgentRow::name, filter.text);
        if (!filter.squad_id.empty()) {
          TRY_ASSIGN(auto members, MembersOf(tx, filter.squad_id));
          select.In(&AgentRow::id, members);
        }
        return ListPage(tx, select.Order(&AgentRow::created_at).Order(&AgentRow::id), filter.page);
      });
}

Task<Result<AgentRow>> Agents::Get(std::string owner_id, std::string id) {
  co_return co_await platform_.store.Read(
      [owner_id, id](Transaction& tx) { return NeedAgent(tx, owner_id, id); });
}

Task<Result<AgentRow>> Agents::Update(std::string owner_id, std::string id, AgentChange change) {
  if (change.adapter || change.config) {
    CO_TRY_ASSIGN(AgentRow wanted, co_await Get(owner_id, id));
    CO_TRY(Apply(wanted, change));
    CO_TRY(Check(wanted));
    CO_TRY(co_await CheckModel(std::move(wanted)));
  }
  co_return co_await platform_.store.Write(
      [this, owner_id, id, change](Transaction& tx) -> Result<AgentRow> {
        TRY_ASSIGN(AgentRow agent, NeedAgent(tx, owner_id, id));
        TRY(Apply(agent, change));
        TRY(Check(agent));
        TRY(SetAgentStatus(tx, platform_, agent, agent.status));
        return agent;
      });
}

Task<Status> Agents::Delete(std::string owner_id, std::string id) {
  co_return co_await platform_.store.Write([this, owner_id, id](Transaction& tx) -> Status {
    TRY_ASSIGN(AgentRow agent, NeedAgent(tx, owner_id, id));
    if (agent.current_task_id)
      return Fail(Code::kFailedPrecondition, "the agent {} works on the task {}; cancel it first",
                  agent.name, *agent.current_task_id);
    TRY(tx.Delete(Select<AgentRow>().Eq(&AgentRow::id, id)));
    TRY(platform_.log.Emit(tx, About(agent, "agent_deleted", AgentData(agent))));
    return {};
  });
}

}  // namespace caisson::work

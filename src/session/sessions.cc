#include "session/sessions.h"

#include <boost/json/serialize.hpp>

#include "base/id.h"
#include "base/text.h"
#include "sandbox/shield.h"
#include "session/event.h"
#include "session/options.h"
#include "session/status.h"
#include "session/tier_models.h"
#include "session/titles.h"
#include "store/person_rows.h"
#include "work/agents.h"
#include "work/authors.h"
#include "work/json_fields.h"

namespace caisson::session {
namespace {

using store::MessageRow;
using store::Select;
using store::SessionRow;
using store::Transaction;
using work::TextOf;

constexpr size_t kMaxTitle = 200, kMaxModel = 200, kMaxName = 200;

std::string TitleOf(const NewSession& session) {
  return session.title.empty() ? WordsOf(session.message) : session.title;
}

Status Check(const Config& config, SessionRow& row) {
  TRY(work::CheckText(row.title, "the title of a session", 1, kMaxTitle));
  TRY(work::CheckText(row.model, "model", 0, kMaxModel));
  TRY(work::CheckText(row.template_name, "template", 0, kMaxName));
  if (!row.repo_url.empty()) {
    TRY_ASSIGN(auto repository, git::ParseRepository(row.repo_url, config.github_url));
    row.repo_url = repository.clone_url();
  }
  if (!row.base_branch.empty()) TRY(git::CheckBranchName(row.base_branch));
  return git::CheckBranchName(BranchFor(row, config));
}

// What the user has chosen for sessions that do not name a model, "" if nothing.
Result<std::string> DefaultModelOf(Transaction& tx, const std::string& owner_id) {
  TRY_ASSIGN(auto preferences, tx.Get<store::PreferencesRow>(owner_id));
  return preferences ? work::TextOf(work::ParseObject(preferences->value), "default_model") : "";
}

// A user whose tier has a model gets that one, for as long as the session lives.
Status FixModel(Transaction& tx, const Config& config, SessionRow& row, const std::string& wanted) {
  TRY_ASSIGN(std::string fixed, TierModelOf(tx, config, row.owner_id));
  if (fixed.empty()) return {};
  if (!wanted.empty() && wanted != fixed)
    return Fail(Code::kPermissionDenied, "your sessions are answered by {}; '{}' is not for you",
                fixed, wanted);
  row.model = fixed;
  return {};
}

Status CheckAgent(Transaction& tx, const SessionRow& row) {
  if (row.agent_id.empty()) return {};
  TRY(work::NeedAgent(tx, row.owner_id, row.agent_id));
  return {};
}

Select<SessionRow> Matching(const std::string& owner_id, const SessionFilter& filter) {
  Select<SessionRow> select;
  select.Eq(&SessionRow::owner_id, owner_id);
  select.NotEq(&SessionRow::status_reason, std::string(kDeleting));
  if (filter.statuses.empty()) select.NotEq(&SessionRow::status, "archived");
  if (!filter.statuses.empty()) select.In(&SessionRow::status, filter.statuses);
  if (!filter.repo.empty()) select.Contains(&SessionRow::repo_url, filter.repo);
  if (!filter.text.empty()) select.Contains(&SessionRow::title, filter.text);
  return select;
}

Status StartProvision(Transaction& tx, work::Platform& platform, const SessionRow& session) {
  return platform.flow.StartRun(tx, {.id = RandomUuid(),
                                     .definition = "session",
                                     .owner_id = session.owner_id,
                                     .input = {{"session_id", session.id}},
                                     .user_key = session.owner_id});
}

}  // namespace

Task<void> Sessions::Stop() {
  co_await operations_.Stop(std::chrono::milliseconds(platform_.config.shutdown_grace_ms));
}

Result<SessionView> Sessions::View(Transaction& tx, SessionRow row) const {
  SessionView view;
  auto of = [&](const char* state, const char* role) {
    return Select<MessageRow>()
        .Eq(&MessageRow::session_id, row.id)
        .Eq(&MessageRow::state, state)
        .Eq(&MessageRow::role, role);
  };
  TRY_ASSIGN(auto answer, tx.First(of("running", "assistant")));
  if (answer) view.answering = answer->id;
  TRY_ASSIGN(view.queued, tx.Count(of("queued", "user")));
  view.row = std::move(row);
  return view;
}

Result<SessionRow> Sessions::Insert(Transaction& tx, const std::string& owner_id,
                                    const NewSession& session) {
  SessionRow row{.id = RandomUuid(),
                 .owner_id = owner_id,
                 .title = TitleOf(session),
                 .repo_url = session.repo_url,
                 .base_branch = session.base_branch,
                 .agent_id = session.agent_id,
                 .model = session.model,
                 .template_name = session.template_name,
                 .status_reason = "created",
                 .options = json::serialize(session.options),
                 .created_at = Now(),
                 .last_used_at = Now()};
  if (row.model.empty()) {
    TRY_ASSIGN(row.model, DefaultModelOf(tx, owner_id));
  }
  TRY(FixModel(tx, platform_.config, row, session.model));
  TRY(Check(platform_.config, row));
  TRY(CheckAgent(tx, row));
  if (OpensPullRequest(row, platform_.config)) TRY(work::CheckAuthor(tx, platform_, owner_id));
  TRY(tx.Insert(row));
  TRY(platform_.log.Emit(tx, About(row, "session_updated", SessionData(row))));
  return row;
}

Task<Result<SessionView>> Sessions::Create(std::string owner_id, NewSession session) {
  CO_TRY(co_await CheckModel(owner_id, session.agent_id, session.model));
  bool starts = !session.message.empty();
  if (starts) CO_TRY(starts_.Take(owner_id));
  auto made = co_await platform_.store.Write([=, this](Transaction& tx) -> Result<SessionView> {
    TRY_ASSIGN(SessionRow row, Insert(tx, owner_id, session));
    TRY(StartProvision(tx, platform_, row));
    if (session.message.empty()) return View(tx, row);
    TRY_ASSIGN(Exchange first, AddMessage(tx, platform_, row, session.message, session.mode));
    if (session.title.empty()) TRY(StartNaming(tx, platform_, row, first.message));
    TRY_ASSIGN(SessionView view, View(tx, row));
    view.first = std::move(first);
    return view;
  });
  if (starts && !made) starts_.GiveBack(owner_id);
  platform_.flow.Wake();
  co_return made;
}

Task<Result<work::Listed<SessionView>>> Sessions::List(std::string owner_id, SessionFilter filter) {
  co_return co_await platform_.store.Read(
      [=, this](Transaction& tx) -> Result<work::Listed<SessionView>> {
        work::Listed<SessionView> listed;
        auto select = Matching(owner_id, filter);
        TRY_ASSIGN(listed.total, tx.Count(select));
        select.Order(&SessionRow::last_used_at, /*descending=*/true).Order(&SessionRow::id);
        TRY_ASSIGN(auto rows, tx.List(select.Limit(filter.page.limit).Offset(filter.page.offset)));
        for (SessionRow& row : rows) {
          TRY_ASSIGN(SessionView view, View(tx, std::move(row)));
          listed.items.push_back(std::move(view));
        }
        return listed;
      });
}

Task<Result<SessionView>> Sessions::Get(std::string owner_id, std::string id) {
  co_return co_await platform_.store.Read([=, this](Transaction& tx) -> Result<SessionView> {
    TRY_ASSIGN(SessionRow row, NeedSession(tx, owner_id, id));
    return View(tx, std::move(row));
  });
}

Task<Result<SessionView>> Sessions::Update(std::string owner_id, std::string id,
                                           SessionChange change) {
  if (change.model || change.agent_id) {
    CO_TRY_ASSIGN(SessionView now, co_await Get(owner_id, id));
    CO_TRY(co_await CheckModel(owner_id, change.agent_id.value_or(now.row.agent_id),
                               change.model.value_or(now.row.model)));
  }
  auto changed = co_await platform_.store.Write([=, this](Transaction& tx) -> Status {
    TRY_ASSIGN(SessionRow row, NeedSession(tx, owner_id, id));
    TRY_ASSIGN(auto message, Answering(tx, id));
    if (message && (change.agent_id || change.model || change.archived.value_or(false)))
      return Fail(Code::kFailedPrecondition,
                  "an answer is being written; agent and model can be changed, and the session "
                  "archived, when it is done");
    if (change.title) row.title = *change.title;
    if (change.agent_id) row.agent_id = *change.agent_id;
    if (change.model && *change.model != row.model) {
      row.model = *change.model;
      TRY(FixModel(tx, platform_.config, row, *change.model));
    }
    TRY(Check(platform_.config, row));
    if (change.agent_id) TRY(CheckAgent(tx, row));
    TRY(tx.Update(row));
    TRY(platform_.log.Emit(tx, About(row, "session_updated", SessionData(row))));
    if (change.archived.value_or(true) || row.status != "archived") return {};
    row.last_used_at = Now();
    return SetStatus(tx, platform_, row, {"paused", "request"});
  });
  CO_TRY(changed);
  if (change.archived.value_or(false))
    CO_TRY(co_await sandbox::Shield<bool>(
        operations_, "archive a session",
        [](Keeper& keeper, std::string which) -> Task<Result<bool>> {
          CO_TRY(co_await keeper.End(std::move(which), "archived", "request"));
          co_return true;
        }(keeper_, id)));
  co_return co_await Get(std::move(owner_id), std::move(id));
}

Task<Status> Sessions::CheckModel(std::string owner_id, std::string agent_id, std::string model) {
  if (agent_id.empty() || model.empty()) co_return Status();
  CO_TRY_ASSIGN(auto agent, co_await platform_.store.Read([=](Transaction& tx) {
    return work::NeedAgent(tx, owner_id, agent_id);
  }));
  if (!work::AsksOwnServer(agent.adapter)) co_return Status();
  co_return co_await models_.Check(std::move(model));
}

Task<Result<std::vector<Model>>> Sessions::Models(std::string owner_id) {
  using store::AgentRow;
  CO_TRY_ASSIGN(auto agents, co_await platform_.store.Read([owner_id](Transaction& tx) {
    return tx.List(Select<AgentRow>().Eq(&AgentRow::owner_id, owner_id).Order(&AgentRow::name));
  }));
  std::map<std::string, Model> models;
  if (const std::string& own = platform_.config.llm_model; !own.empty()) models[own].builds = true;
  for (AgentRow& agent : agents)
    if (std::string name = TextOf(work::ParseObject(agent.config), "model"); !name.empty())
      models[name].agents.push_back(std::move(agent));
  for (const std::string& name : co_await models_.List()) models[name].offered = true;
  std::vector<Model> list;
  for (auto& [name, model] : models) {
    model.name = name;
    list.push_back(std::move(model));
  }
  co_return list;
}

// ---- deleting ----------------------------------------------------------------------------------

Task<Status> Sessions::Delete(std::string owner_id, std::string id) {
  // From here on it is gone for everybody but us; who is killed in between is followed by
  // FinishDelete().
  CO_TRY(co_await platform_.store.Write([=, this](Transaction& tx) -> Status {
    TRY_ASSIGN(SessionRow row, NeedSession(tx, owner_id, id));
    TRY(StopMessages(tx, platform_, row, /*all=*/true, "the session was deleted"));
    return SetStatus(tx, platform_, row, {"archived", std::string(kDeleting)});
  }));
  platform_.flow.Wake();
  auto done = co_await sandbox::Shield<bool>(
      operations_, "delete a session", [](Sessions& all, std::string which) -> Task<Result<bool>> {
        CO_TRY(co_await all.FinishDelete(std::move(which)));
        co_return true;
      }(*this, id));
  CO_TRY(done);
  co_return Status();
}

Task<Status> Sessions::FinishDelete(std::string id) {
  CO_TRY(co_await keeper_.End(id, "archived", std::string(kDeleting)));
  co_return co_await platform_.store.Write([=, this](Transaction& tx) -> Status {
    TRY_ASSIGN(auto row, tx.Get<SessionRow>(id));
    if (!row) return {};
    TRY(tx.Delete(Select<MessageRow>().Eq(&MessageRow::session_id, id)));
    TRY(tx.Delete(Select<SessionRow>().Eq(&SessionRow::id, id)));
    TRY(platform_.log.Emit(tx, About(*row, "session_deleted", SessionData(*row))));
    return {};
  });
}

// ---- talking -----------------------------------------------------------------------------------

Task<Result<Exchange>> Sessions::Send(std::string owner_id, std::string id, std::string text,
                                      std::string mode) {
  CO_TRY(starts_.Take(owner_id));
  auto sent = co_await platform_.store.Write([=, this](Transaction& tx) -> Result<Exchange> {
    TRY_ASSIGN(SessionRow row, NeedSession(tx, owner_id, id));
    if (row.status == "archived") TRY(SetStatus(tx, platform_, row, {"provisioning", "message"}));
    TRY_ASSIGN(Exchange made, AddMessage(tx, platform_, row, text, mode));
    if (row.title != kUntitled || made.message.seq != 1) return made;
    row.title = WordsOf(text);
    TRY(tx.Update(row));
    TRY(platform_.log.Emit(tx, About(row, "session_updated", SessionData(row))));
    TRY(StartNaming(tx, platform_, row, made.message));
    return made;
  });
  if (!sent) starts_.GiveBack(owner_id);
  platform_.flow.Wake();
  co_return sent;
}

Task<Result<History>> Sessions::Messages(std::string owner_id, std::string id, int64_t before,
                                         int64_t limit) {
  co_return co_await platform_.store.Read([=](Transaction& tx) -> Result<History> {
    TRY(NeedSession(tx, owner_id, id));
    auto select = Select<MessageRow>().Eq(&MessageRow::session_id, id);
    if (before > 0) select.Less(&MessageRow::seq, before);
    History history;
    TRY_ASSIGN(history.messages, tx.List(select.Order(&MessageRow::seq, true).Limit(limit + 1)));
    history.more = static_cast<int64_t>(history.messages.size()) > limit;
    if (history.more) history.messages.pop_back();
    std::ranges::reverse(history.messages);
    return history;
  });
}

Task<Status> Sessions::StopAnswer(std::string owner_id, std::string id, bool all) {
  auto stopped = co_await platform_.store.Write([=, this](Transaction& tx) -> Status {
    TRY_ASSIGN(SessionRow row, NeedSession(tx, owner_id, id));
    TRY_ASSIGN(bool any, StopMessages(tx, platform_, row, all, "stopped by its user"));
    if (!any) return Fail(Code::kFailedPrecondition, "no answer is being written");
    return {};
  });
  platform_.flow.Wake();
  co_return stopped;
}

// ---- its sandbox -------------------------------------------------------------------------------

Task<Status> Sessions::Owned(std::string owner_id, std::string id) {
  CO_TRY(co_await platform_.store.Read(
      [=](Transaction& tx) { return NeedSession(tx, owner_id, id); }));
  co_return Status();
}

Task<Result<Keeper::Opened>> Sessions::Provision(std::string owner_id, std::string id) {
  CO_TRY(co_await Owned(std::move(owner_id), id));
  std::chrono::seconds wait(platform_.config.session_provision_wait_s);
  auto end = std::chrono::steady_clock::now() + wait;
  auto opened = co_await WithDeadline(
      wait, "waiting for the sandbox",
      sandbox::Shield(operations_, "open a session", keeper_.Open(std::move(id), "request")));
  if (opened || opened.error().code() != Code::kDeadlineExceeded ||
      std::chrono::steady_clock::now() < end)
    co_return opened;
  co_return Fail(Code::kDeadlineExceeded,
                 "provision_timeout: the sandbox was not there after {} s; it is still being made",
                 wait.count());
}

Task<Status> Sessions::Pause(std::string owner_id, std::string id) {
  CO_TRY(co_await Owned(std::move(owner_id), id));
  auto done = co_await sandbox::Shield<bool>(
      operations_, "pause a session", [](Keeper& keeper, std::string which) -> Task<Result<bool>> {
        CO_TRY(co_await keeper.Pause(std::move(which), "request"));
        co_return true;
      }(keeper_, std::move(id)));
  CO_TRY(done);
  co_return Status();
}

Task<Result<work::SandboxState>> Sessions::Look(std::string owner_id, std::string id) {
  CO_TRY(co_await Owned(std::move(owner_id), id));
  co_return co_await keeper_.Look(std::move(id));
}

}  // namespace caisson::session

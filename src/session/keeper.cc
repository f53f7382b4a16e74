#include "session/keeper.h"

#include "base/log.h"
#include "base/text.h"
#include "git/commit_message.h"
#include "session/event.h"
#include "session/messages.h"
#include "session/options.h"
#include "session/status.h"

namespace caisson::session {
namespace {

using store::Select;
using store::SessionRow;
using store::Transaction;

constexpr std::chrono::milliseconds kShort{20'000};
constexpr std::string_view kMarkFile = "/tmp/.caisson/mark";

Error NoSandbox(const std::string& session_id) {
  return Error(Code::kNotFound, fmt::format("no_sandbox: session {} has no sandbox", session_id));
}

// The provider's own words, after the word that says what failed.
Error Because(std::string_view word, const Error& error) {
  return Error(error.code(), fmt::format("{}: {}", word, error.message()));
}

// What the mark says from this pause on: the time that the sandbox has run, which only grows.
std::string MarkOf(const SessionRow& session, int64_t running_ms) {
  return fmt::format("{} {}", session.id, running_ms);
}

}  // namespace

Task<Result<git::Lock::Guard>> Keeper::Lock(std::string kind, std::string id) {
  auto wait = std::chrono::milliseconds(platform_.config.create_timeout_ms * 4);
  co_return co_await locks_.For(kind, id)->Acquire(wait);
}

Task<Result<SessionRow>> Keeper::Load(std::string session_id) {
  co_return co_await platform_.store.Read(
      [session_id](Transaction& tx) { return NeedSession(tx, "", session_id); });
}

// ---- opening -----------------------------------------------------------------------------------

Task<Result<Keeper::Opened>> Keeper::Open(std::string session_id, std::string reason) {
  CO_TRY_ASSIGN(SessionRow session, co_await Load(session_id));
  std::optional<git::Lock::Guard> room;
  if (platform_.config.session_max_running_per_user > 0 && session.status != "active") {
    // Whoever wants two of these takes the user's first: nobody waits in a circle.
    CO_TRY_ASSIGN(auto guard, co_await Lock("user", session.owner_id));
    room.emplace(std::move(guard));
    CO_TRY(co_await MakeRoom(session));
  }
  CO_TRY_ASSIGN(auto guard, co_await Lock("session", session_id));
  CO_TRY_ASSIGN(session, co_await Load(session_id));
  co_return co_await OpenLocked(std::move(session), std::move(reason));
}

Task<Status> Keeper::MakeRoom(SessionRow session) {
  auto others = Select<SessionRow>()
                    .Eq(&SessionRow::owner_id, session.owner_id)
                    .Eq(&SessionRow::status, "active")
                    .NotEq(&SessionRow::id, session.id)
                    .Order(&SessionRow::last_used_at);
  CO_TRY_ASSIGN(auto running, co_await platform_.store.Read(
                                  [others](Transaction& tx) { return tx.List(others); }));
  auto limit = static_cast<size_t>(platform_.config.session_max_running_per_user);
  if (running.size() < limit) co_return Status();
  size_t left = running.size();
  for (const SessionRow& other : running) {
    if (Status paused = co_await Pause(other.id, "room"); paused) --left;
    if (left < limit) co_return Status();
  }
  co_return Fail(Code::kResourceExhausted,
                 "{} sessions of yours run already (session_max_running_per_user), and none of "
                 "them can be put away now",
                 left);
}

Task<Result<Keeper::Opened>> Keeper::OpenLocked(SessionRow session, std::string reason) {
  work::SandboxRequest request{.owner_id = session.owner_id,
                               .holder = {.kind = "session", .id = session.id},
                               .template_name = session.template_name,
                               .metadata = {{"sessionId", session.id}},
                               .env = EnvOf(session),
                               .sleeps = true};
  if (request.template_name.empty()) request.template_name = platform_.config.session_template;
  auto row = co_await sandboxes_.Create(std::move(request));
  if (!row) {
    // It is well; only we cannot reach it.
    if (work::IsElsewhere(row.error())) co_return tl::unexpected(std::move(row).error());
    Error error =
        Because(session.sandbox_id.empty() ? "create_failed" : "resume_failed", row.error());
    (void)co_await platform_.store.Write([=, this](Transaction& tx) -> Status {
      TRY_ASSIGN(SessionRow now, NeedSession(tx, "", session.id));
      return SetStatus(tx, platform_, now, {"error", reason, error.message()});
    });
    co_return tl::unexpected(std::move(error));
  }
  bool made = row->id != session.sandbox_id;
  bool lost = made && !session.sandbox_id.empty();
  bool older = false;
  if (!made && session.status == "paused" && session.status_reason != "outside" &&
      session.error.empty())
    older = !co_await HasMark(session, MarkOf(session, session.running_ms));
  auto written = co_await platform_.store.Write([=, this, id = row->id](Transaction& tx) -> Status {
    TRY_ASSIGN(SessionRow now, NeedSession(tx, "", session.id));
    now.sandbox_id = id;
    now.last_used_at = Now();
    TRY(SetStatus(tx, platform_, now, {"active", reason}));
    if (lost)
      TRY(AddNote(tx, platform_, now,
                  "The sandbox of this session was lost. A new one was made; the work continues "
                  "from what was committed."));
    if (older)
      TRY(AddNote(tx, platform_, now,
                  "The sandbox came back without its last changes: its files are older than they "
                  "were when it was paused."));
    return {};
  });
  if (!written) {
    // It was deleted meanwhile: nobody would ever use it.
    if (made) (void)co_await sandboxes_.Destroy("", row->id, "its session is gone");
    co_return tl::unexpected(std::move(written).error());
  }
  co_return Opened{std::move(*row), made};
}

// ---- putting away ------------------------------------------------------------------------------

Task<Status> Keeper::Pause(std::string session_id, std::string reason) {
  CO_TRY_ASSIGN(auto guard, co_await Lock("session", session_id));
  auto loaded = co_await platform_.store.Read([session_id](Transaction& tx) -> Result<SessionRow> {
    TRY_ASSIGN(SessionRow session, NeedSession(tx, "", session_id));
    TRY_ASSIGN(auto message, Answering(tx, session_id));
    if (message)
      return Fail(Code::kFailedPrecondition,
                  "an answer is being written in session {}; stop it first", session_id);
    return session;
  });
  CO_TRY(loaded);
  co_return co_await PauseLocked(std::move(*loaded), std::move(reason));
}

Task<Status> Keeper::Rest(std::string session_id, std::string reason) {
  CO_TRY_ASSIGN(auto guard, co_await Lock("session", session_id));
  CO_TRY_ASSIGN(SessionRow session, co_await Load(session_id));
  co_return co_await PauseLocked(std::move(session), std::move(reason));
}

Task<Status> Keeper::PauseLocked(SessionRow session, std::string reason) {
  if (session.sandbox_id.empty()) co_return tl::unexpected(NoSandbox(session.id));
  CO_TRY_ASSIGN(auto state, co_await sandboxes_.Get("", session.sandbox_id));
  if (state.backend_state == "terminated") co_return tl::unexpected(NoSandbox(session.id));
  bool runs = state.backend_state == "running";
  if (!runs && session.status == "paused") co_return Status();
  CO_TRY(sandboxes_.CheckHere(state.row));
  int64_t ran = RunningMs(session, Now());
  std::string unsaved, unmarked;
  if (runs) {
    unsaved = co_await Save(session);
    // One whose disk is full can be put away, too.
    Status marked = co_await SetMark(session, MarkOf(session, ran));
    if (!marked) unmarked = marked.error().message();
  }
  Time touched = Now();
  if (Status paused = co_await sandboxes_.Pause("", session.sandbox_id); !paused) {
    // Our own commands were no use of it: it is as idle as before.
    using Sandbox = store::WorkSandboxRow;
    (void)co_await platform_.store.Write([row = state.row, touched](Transaction& tx) {
      return tx.Set(
          Select<Sandbox>().Eq(&Sandbox::id, row.id).Less(&Sandbox::last_used_at, touched),
          {store::Assign(&Sandbox::last_used_at, row.last_used_at)});
    });
    co_return tl::unexpected(Because("pause_failed", paused.error()));
  }
  co_return co_await platform_.store.Write([=, this](Transaction& tx) -> Status {
    TRY_ASSIGN(SessionRow now, NeedSession(tx, "", session.id));
    TRY(SetStatus(tx, platform_, now, {"paused", runs ? reason : "outside", unmarked}));
    now.running_ms = ran;  // what the mark says
    TRY(tx.Update(now));
    if (unsaved.empty()) return {};
    return AddNote(
        tx, platform_, now,
        "The sandbox was paused with changes that could not be saved outside of it: " + unsaved);
  });
}

Task<std::string> Keeper::Save(SessionRow session) {
  if (session.branch.empty() || !Commits(session, platform_.config)) co_return "";
  work::GitDesk::Place place{session.owner_id, session.sandbox_id, ""};
  auto status = co_await desk_.Status(place);
  if (!status) co_return status.error().message();
  if (status->branch != session.branch) co_return "";  // the user works on something else
  auto made = co_await desk_.Commit(
      place, {.message = "chore: save work in progress\n\nCaisson-Session: " + session.id});
  if (!made) co_return made.error().message();
  if (!made->committed || !CanPush(session, platform_.config)) co_return "";
  auto pushed = co_await desk_.Push(place, session.branch);
  co_return pushed ? "" : pushed.error().message();
}

Task<Status> Keeper::SetMark(SessionRow session, std::string mark) {
  CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect("", session.sandbox_id));
  sdk::Command command;
  command.argv = {"/bin/sh",
                  "-c",
                  R"(mkdir -p "${1%/*}" && printf %s "$2" >"$1")",
                  "sh",
                  std::string(kMarkFile),
                  std::move(mark)};
  command.timeout = kShort;
  CO_TRY_ASSIGN(auto result, co_await connection.envd.Run(std::move(command)));
  if (result.exit_code != 0)
    co_return Fail(Code::kUnavailable, "the sandbox cannot be written to: {}",
                   Trim(result.stderr_text));
  co_return Status();
}

Task<bool> Keeper::HasMark(SessionRow session, std::string mark) {
  auto connection = co_await sandboxes_.Connect("", session.sandbox_id);
  if (!connection) co_return true;  // what cannot be read says nothing
  sdk::Command command;
  command.argv = {"/bin/cat", std::string(kMarkFile)};
  command.timeout = kShort;
  auto result = co_await connection->envd.Run(std::move(command));
  if (!result || (result->exit_code == 0 && result->stdout_text == mark)) co_return true;
  LogWarn("a sandbox came back with older files", {{"session", session.id},
                                                   {"sandbox", session.sandbox_id},
                                                   {"expected", mark},
                                                   {"found", result->stdout_text}});
  co_return false;
}

Task<Status> Keeper::End(std::string session_id, std::string status, std::string reason) {
  CO_TRY_ASSIGN(auto guard, co_await Lock("session", session_id));
  // By the holder, not by the row: it may have been made by a server that was killed before it
  // could say so.
  CO_TRY_ASSIGN(auto sandbox, co_await sandboxes_.FindByHolder("session", session_id));
  if (sandbox) CO_TRY(co_await sandboxes_.Destroy("", sandbox->id, reason));
  co_return co_await platform_.store.Write([=, this](Transaction& tx) -> Status {
    TRY_ASSIGN(auto session, tx.Get<SessionRow>(session_id));
    if (!session) return {};
    TRY(SetStatus(tx, platform_, *session, {status, reason}));
    session->sandbox_id.clear();
    if (status == "archived") session->archived_at = Now();
    return tx.Update(*session);
  });
}

// ---- looking -----------------------------------------------------------------------------------

Task<Result<work::SandboxState>> Keeper::Look(std::string session_id) {
  CO_TRY_ASSIGN(SessionRow session, co_await Load(session_id));
  if (session.sandbox_id.empty()) co_return tl::unexpected(NoSandbox(session_id));
  auto state = co_await sandboxes_.Get("", session.sandbox_id);
  if (!state && state.error().code() != Code::kNotFound)
    co_return tl::unexpected(Because("status_failed", state.error()));
  std::string now = state ? state->backend_state : "terminated";
  Condition condition;
  if (now == "running" && session.status == "paused") condition = {"active", "traffic"};
  if (now == "paused" && session.status == "active") condition = {"paused", "outside"};
  if (now == "terminated" && (session.status == "active" || session.status == "paused"))
    condition = {"paused", "lost"};
  if (!condition.status.empty())
    CO_TRY(co_await platform_.store.Write([=, this](Transaction& tx) -> Status {
      TRY_ASSIGN(SessionRow row, NeedSession(tx, "", session_id));
      // Somebody else has changed it meanwhile, and knows better.
      if (row.status != session.status || row.sandbox_id != session.sandbox_id) return {};
      if (condition.status == "active") row.last_used_at = Now();
      return SetStatus(tx, platform_, row, condition);
    }));
  if (!state) co_return tl::unexpected(NoSandbox(session_id));
  co_return std::move(*state);
}

}  // namespace caisson::session

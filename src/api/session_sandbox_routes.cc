// The sandboxes of sessions, and the routes of the seeds for sandboxes: /sandbox.
#include "api/session_codec.h"
#include "api/session_routes.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

using work::TextOf;

const std::string& Id(const Call& call) { return call.params.find("id")->second; }

std::string SessionOf(const work::SandboxRow& row) {
  return row.holder_kind == "session" ? row.holder_id : std::string();
}

}  // namespace

Answer SessionRoutes::ProvisionFor(Call& call, std::string session_id) {
  CO_TRY_ASSIGN(auto opened, co_await sessions_.Provision(call.who.user_id, session_id));
  call.target = opened.sandbox.id;
  co_return http::Response::Json(opened.made ? 201 : 200,
                                 EncodeSessionSandbox(opened.sandbox, session_id));
}

Answer SessionRoutes::Provision(Call& call) { return ProvisionFor(call, Id(call)); }

Answer SessionRoutes::ShowSandbox(Call& call) {
  CO_TRY_ASSIGN(auto state, co_await sessions_.Look(call.who.user_id, Id(call)));
  co_return http::Response::Json(200, EncodeSessionSandbox(state.row, Id(call)));
}

Answer SessionRoutes::PauseSession(Call& call) {
  CO_TRY(co_await sessions_.Pause(call.who.user_id, Id(call)));
  co_return co_await ShowSandbox(call);
}

Answer SessionRoutes::CreateSandbox(Call& call) {
  if (std::string session = TextOf(call.body, "sessionId"); !session.empty())
    co_return co_await ProvisionFor(call, std::move(session));
  CO_TRY_ASSIGN(auto row,
                co_await sandboxes_.Create({.owner_id = call.who.user_id,
                                            .holder = {.id = call.new_id},
                                            .template_name = TextOf(call.body, "template")}));
  call.target = row.id;
  co_return http::Response::Json(201, EncodeSessionSandbox(row, ""));
}

Answer SessionRoutes::SandboxStatus(Call& call) {
  CO_TRY_ASSIGN(auto state, co_await sandboxes_.Get(call.who.user_id, Id(call)));
  co_return http::Response::Json(200, EncodeSessionSandbox(state.row, SessionOf(state.row)));
}

Answer SessionRoutes::PauseSandbox(Call& call) {
  CO_TRY_ASSIGN(auto state, co_await sandboxes_.Get(call.who.user_id, Id(call)));
  // That of a session has work to save first.
  if (std::string session = SessionOf(state.row); !session.empty()) {
    CO_TRY(co_await sessions_.Pause(call.who.user_id, session));
  } else {
    CO_TRY(co_await sandboxes_.Pause(call.who.user_id, Id(call)));
  }
  co_return co_await SandboxStatus(call);
}

void SessionRoutes::AddSandboxes(Frame& frame) {
  auto add = [&](std::string_view method, std::string_view pattern, std::string_view id,
                 std::string_view summary, Method handler, std::map<int, std::string_view> answers,
                 std::string_view request = {}) {
    frame.Add({.method = method,
               .pattern = pattern,
               .tag = "sessions",
               .id = id,
               .summary = summary,
               .access = method == "GET" ? Access::kViewer : Access::kMember,
               .request = request,
               .body_optional = true,
               .responses = std::move(answers),
               .handler = Bind(handler)});
  };
  add("GET", "/api/v1/sessions/{id}/sandbox", "getSessionSandbox",
      "The sandbox of a session; wakes nothing", &SessionRoutes::ShowSandbox,
      {{200, "SessionSandbox"}, {503, "Error"}});
  add("POST", "/api/v1/sessions/{id}/sandbox/provision", "provisionSessionSandbox",
      "Make the session's sandbox, or wake it", &SessionRoutes::Provision,
      {{200, "SessionSandbox"}, {201, "SessionSandbox"}, {409, "Error"}, {504, "Error"}});
  add("GET", "/api/v1/sessions/{id}/sandbox/status", "getSessionSandboxStatus",
      "The sandbox of a session; wakes nothing", &SessionRoutes::ShowSandbox,
      {{200, "SessionSandbox"}, {503, "Error"}});
  add("POST", "/api/v1/sessions/{id}/sandbox/pause", "pauseSessionSandbox",
      "Save the work and put the session's sandbox away", &SessionRoutes::PauseSession,
      {{200, "SessionSandbox"}, {409, "Error"}, {503, "Error"}});
  add("POST", "/api/v1/sandbox", "createSandboxForSession", "Make a sandbox, or that of a session",
      &SessionRoutes::CreateSandbox,
      {{200, "SessionSandbox"}, {201, "SessionSandbox"}, {409, "Error"}, {504, "Error"}},
      "NewSessionSandbox");
  add("GET", "/api/v1/sandbox/{id}/status", "getSandboxStatus", "A sandbox; wakes nothing",
      &SessionRoutes::SandboxStatus, {{200, "SessionSandbox"}, {503, "Error"}});
  add("POST", "/api/v1/sandbox/{id}/pause", "putSandboxAway", "Put a sandbox away",
      &SessionRoutes::PauseSandbox, {{200, "SessionSandbox"}, {409, "Error"}, {503, "Error"}});
  frame.AddAlias("POST", "/api/sandbox", "/api/v1/sandbox");
  frame.AddAlias("GET", "/api/sandbox/{id}/status", "/api/v1/sandbox/{id}/status");
  frame.AddAlias("POST", "/api/sandbox/{id}/pause", "/api/v1/sandbox/{id}/pause");
  frame.AddAlias("POST", "/api/sessions", "/api/v1/sessions");
  frame.AddAlias("GET", "/api/sessions/{id}", "/api/v1/sessions/{id}");
  frame.AddAlias("GET", "/api/sessions/{id}/sandbox", "/api/v1/sessions/{id}/sandbox");
}

}  // namespace caisson::api

#include "api/session_routes.h"

#include "api/fields.h"
#include "api/sandbox_routes.h"
#include "api/session_codec.h"
#include "api/work_codec.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

using work::TextOf;

const std::string& Id(const Call& call) { return call.params.find("id")->second; }

}  // namespace

Handler SessionRoutes::Bind(Method method) {
  return [this, method](Call& call) { return Serve(method, call); };
}

// What a rule does not accept is told like what a schema does not accept.
Answer SessionRoutes::Serve(Method method, Call& call) {
  auto answer = co_await (this->*method)(call);
  if (answer) co_return answer;
  // The frame knows when the user may start something again.
  bool starts = method == &SessionRoutes::Send || method == &SessionRoutes::Create;
  if (starts && answer.error().code() == Code::kResourceExhausted) co_return answer;
  if (answer.error().code() != Code::kInvalidArgument)
    co_return RefusedSandbox(answer.error(), call);
  co_return ErrorResponse(
      Refusal{.status = 422, .code = "validation_failed", .message = answer.error().message()},
      call.exchange.request_id());
}

// ---- sessions ----------------------------------------------------------------------------------

Answer SessionRoutes::Create(Call& call) {
  CO_TRY_ASSIGN(auto made, co_await sessions_.Create(call.who.user_id, ReadNewSession(call.body)));
  call.target = made.row.id;
  co_return http::Response::Json(201, Encode(made));
}

Answer SessionRoutes::List(Call& call) {
  session::SessionFilter filter{.statuses = TextParameters(call, "status"),
                                .repo = TextParameter(call, "repo"),
                                .text = TextParameter(call, "text"),
                                .page = PageOf(call)};
  CO_TRY_ASSIGN(auto listed, co_await sessions_.List(call.who.user_id, std::move(filter)));
  co_return ListResponse("sessions", listed);
}

Answer SessionRoutes::Get(Call& call) {
  CO_TRY_ASSIGN(auto view, co_await sessions_.Get(call.who.user_id, Id(call)));
  co_return http::Response::Json(200, Encode(view));
}

Answer SessionRoutes::Update(Call& call) {
  CO_TRY_ASSIGN(auto view, co_await sessions_.Update(call.who.user_id, Id(call),
                                                     ReadSessionChange(call.body)));
  co_return http::Response::Json(200, Encode(view));
}

Answer SessionRoutes::SetModel(Call& call) { return Update(call); }

Answer SessionRoutes::Models(Call& call) {
  CO_TRY_ASSIGN(auto models, co_await sessions_.Models(call.who.user_id));
  json::array list;
  for (const session::Model& model : models) list.push_back(Encode(model));
  co_return http::Response::Json(200, json::object{{"models", std::move(list)}});
}

Answer SessionRoutes::Delete(Call& call) {
  CO_TRY(co_await sessions_.Delete(call.who.user_id, Id(call)));
  co_return http::Response::Empty(204);
}

Answer SessionRoutes::DeleteMany(Call& call) {
  json::array deleted, missing;
  for (const std::string& id : work::TextsOf(call.body, "ids")) {
    Status done = co_await sessions_.Delete(call.who.user_id, id);
    if (!done && done.error().code() != Code::kNotFound)
      co_return tl::unexpected(std::move(done).error());
    (done ? deleted : missing).emplace_back(id);
  }
  co_return http::Response::Json(
      200, json::object{{"deleted", std::move(deleted)}, {"missing", std::move(missing)}});
}

// ---- messages ----------------------------------------------------------------------------------

Answer SessionRoutes::Send(Call& call) {
  std::string mode = OptionalText(call.body, "mode").value_or("build");
  CO_TRY_ASSIGN(auto sent, co_await sessions_.Send(call.who.user_id, Id(call),
                                                   TextOf(call.body, "text"), std::move(mode)));
  call.target = sent.message.id;
  co_return http::Response::Json(202, Encode(sent));
}

Answer SessionRoutes::History(Call& call) {
  CO_TRY_ASSIGN(auto history, co_await sessions_.Messages(call.who.user_id, Id(call),
                                                          NumberParameter(call, "before", 0),
                                                          NumberParameter(call, "limit", 25)));
  json::array messages;
  for (const store::MessageRow& message : history.messages) messages.push_back(Encode(message));
  json::object body{{"messages", std::move(messages)}};
  if (history.more) body["before"] = history.messages.front().seq;
  co_return http::Response::Json(200, body);
}

Answer SessionRoutes::Stop(Call& call) {
  CO_TRY(co_await sessions_.StopAnswer(call.who.user_id, Id(call), work::TrueIn(call.body, "all")));
  CO_TRY_ASSIGN(auto view, co_await sessions_.Get(call.who.user_id, Id(call)));
  co_return http::Response::Json(202, Encode(view));
}

void SessionRoutes::AddSessions(Frame& frame) {
  frame.Add({.method = "POST",
             .pattern = "/api/v1/sessions",
             .tag = "sessions",
             .id = "createSession",
             .summary = "Begin a session; its sandbox is made behind the answer",
             .request = "NewSession",
             .body_optional = true,
             .responses = {{201, "SessionView"}},
             .handler = Bind(&SessionRoutes::Create)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/sessions",
             .tag = "sessions",
             .id = "listSessions",
             .summary = "Your sessions, last used first",
             .access = Access::kViewer,
             .parameters =
                 WithPage({{.name = "status",
                            .description = "only those; all but archived ones if it is not said",
                            .values = {"provisioning", "active", "paused", "error", "archived"},
                            .repeated = true},
                           {.name = "repo", .description = "part of the repository's URL"},
                           {.name = "text", .description = "part of the title"}}),
             .responses = {{200, "SessionList"}},
             .handler = Bind(&SessionRoutes::List)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/sessions/{id}",
             .tag = "sessions",
             .id = "getSession",
             .summary = "One session",
             .access = Access::kViewer,
             .responses = {{200, "SessionView"}},
             .handler = Bind(&SessionRoutes::Get)});
  frame.Add({.method = "PATCH",
             .pattern = "/api/v1/sessions/{id}",
             .tag = "sessions",
             .id = "updateSession",
             .summary = "Change title, agent or model, or archive a session",
             .request = "SessionChange",
             .responses = {{200, "SessionView"}, {409, "Error"}},
             .handler = Bind(&SessionRoutes::Update)});
  frame.Add({.method = "PUT",
             .pattern = "/api/v1/sessions/{id}/model",
             .tag = "sessions",
             .id = "setSessionModel",
             .summary = "Choose the model of a session; not while an answer is being written",
             .request = "SessionModel",
             .responses = {{200, "SessionView"}, {409, "Error"}},
             .handler = Bind(&SessionRoutes::SetModel)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/models/available",
             .tag = "sessions",
             .id = "listModels",
             .summary = "Models that your agents and this server are set to",
             .access = Access::kViewer,
             .responses = {{200, "ModelList"}},
             .handler = Bind(&SessionRoutes::Models)});
  frame.Add({.method = "DELETE",
             .pattern = "/api/v1/sessions/{id}",
             .tag = "sessions",
             .id = "deleteSession",
             .summary = "Delete a session, its messages and its sandbox",
             .responses = {{204, ""}, {503, "Error"}},
             .handler = Bind(&SessionRoutes::Delete)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/sessions/delete",
             .tag = "sessions",
             .id = "deleteSessions",
             .summary = "Delete several sessions",
             .request = "SessionIds",
             .responses = {{200, "DeletedSessions"}, {503, "Error"}},
             .handler = Bind(&SessionRoutes::DeleteMany)});
}

void SessionRoutes::AddMessages(Frame& frame) {
  frame.Add({.method = "POST",
             .pattern = "/api/v1/sessions/{id}/messages",
             .tag = "sessions",
             .id = "sendMessage",
             .summary = "Say something to the session's agent; it answers in order",
             .request = "NewMessage",
             .responses = {{202, "MessageExchange"}, {409, "Error"}},
             .handler = Bind(&SessionRoutes::Send)});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/sessions/{id}/messages",
             .tag = "sessions",
             .id = "listMessages",
             .summary = "The last messages of a session, oldest first",
             .access = Access::kViewer,
             .parameters = {{.name = "before",
                             .type = "integer",
                             .description = "only those before this place (seq)",
                             .min = 1,
                             .max = 1'000'000'000},
                            {.name = "limit",
                             .type = "integer",
                             .description = "how many at most; 25 if it is not said",
                             .min = 1,
                             .max = 200}},
             .responses = {{200, "MessageHistory"}},
             .handler = Bind(&SessionRoutes::History)});
  frame.Add({.method = "POST",
             .pattern = "/api/v1/sessions/{id}/stop",
             .tag = "sessions",
             .id = "stopAnswer",
             .summary = "Stop the answer that is being written",
             .request = "AnswerStop",
             .body_optional = true,
             .responses = {{202, "SessionView"}, {409, "Error"}},
             .handler = Bind(&SessionRoutes::Stop)});
}

void SessionRoutes::Add(Frame& frame) {
  AddSessionSchemas(frame);
  AddSessions(frame);
  AddMessages(frame);
  AddSandboxes(frame);
}

}  // namespace caisson::api

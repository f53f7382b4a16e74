#include "api/session_codec.h"

#include "api/fields.h"
#include "api/work_codec.h"
#include "session/status.h"
#include "work/json_fields.h"

namespace caisson::api {
namespace {

using work::ParseObject;
using work::TextOf;

constexpr std::string_view kOptions = R"({
  "type": "object",
  "properties": {
    "commit": {"type": "boolean",
      "description": "commit every answer that changes files; default: session_commit"},
    "pull_request": {"enum": ["first_commit", "never"],
      "description": "when a draft is opened; default: session_pull_request"},
    "branch_name": {"type": "string", "minLength": 1, "maxLength": 200},
    "env": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 10000},
      "maxProperties": 100, "description": "variables of its sandbox; shown as ***"}}})";

constexpr std::string_view kNewSession = R"({
  "type": "object",
  "properties": {
    "title": {"type": "string", "minLength": 1, "maxLength": 200,
      "description": "default: the first line of the message"},
    "repo_url": {"type": "string", "maxLength": 2000},
    "base_branch": {"type": "string", "maxLength": 200},
    "agent_id": {"type": "string", "maxLength": 100, "description": "who answers"},
    "model": {"type": "string", "maxLength": 200},
    "template": {"type": "string", "maxLength": 200, "description": "default: session_template"},
    "message": {"type": "string", "minLength": 1, "maxLength": 200000},
    "mode": {"enum": ["build", "plan"]},
    "options": {"$ref": "#/components/schemas/SessionOptions"}}})";

constexpr std::string_view kSessionChange = R"({
  "type": "object", "minProperties": 1,
  "properties": {
    "title": {"type": "string", "minLength": 1, "maxLength": 200},
    "agent_id": {"type": "string", "maxLength": 100},
    "model": {"type": "string", "maxLength": 200, "description": "\"\" = the agent's own choice"},
    "archived": {"type": "boolean"}}})";

constexpr std::string_view kSession = R"({
  "type": "object", "additionalProperties": true,
  "required": ["id", "title", "status", "created_at"],
  "properties": {
    "id": {"type": "string"}, "title": {"type": "string"},
    "status": {"enum": ["provisioning", "active", "paused", "error", "archived"]},
    "status_reason": {"type": "string"}, "error": {"type": "string"},
    "sandbox_id": {"type": ["string", "null"]}, "sandboxId": {"type": ["string", "null"]},
    "repo_url": {"type": "string"}, "base_branch": {"type": "string"},
    "branch": {"type": "string"}, "agent_id": {"type": ["string", "null"]},
    "model": {"type": "string"}, "template": {"type": "string"},
    "options": {"type": "object", "additionalProperties": true},
    "pull_request_url": {"type": "string"}, "pull_request_number": {"type": "integer"},
    "pull_request_state": {"enum": ["", "draft", "open", "approved", "merged", "closed"]},
    "generating": {"type": "boolean"}, "answer_id": {"type": ["string", "null"]},
    "queued": {"type": "integer"}, "running_ms": {"type": "integer"},
    "created_at": {"type": "string", "format": "date-time"},
    "last_used_at": {"type": "string", "format": "date-time"},
    "archived_at": {"type": ["string", "null"]},
    "message": {"$ref": "#/components/schemas/Message"},
    "answer": {"$ref": "#/components/schemas/Message"}}})";

constexpr std::string_view kMessage = R"({
  "type": "object", "additionalProperties": true,
  "required": ["id", "session_id", "seq", "role", "state", "content"],
  "properties": {
    "id": {"type": "string"}, "session_id": {"type": "string"}, "seq": {"type": "integer"},
    "role": {"enum": ["user", "assistant", "system"]},
    "state": {"enum": ["queued", "running", "done", "failed", "stopped"]},
    "mode": {"type": "string"}, "content": {"type": "string"},
    "parts": {"type": "array", "items": {"type": "object", "additionalProperties": true}},
    "reply_to": {"type": ["string", "null"]}, "run_id": {"type": "string"},
    "model": {"type": "string"}, "tokens_in": {"type": "integer"},
    "tokens_out": {"type": "integer"}, "dollars": {"type": "number"},
    "commit_sha": {"type": "string"}, "error": {"type": "string"},
    "created_at": {"type": "string", "format": "date-time"},
    "started_at": {"type": ["string", "null"]}, "finished_at": {"type": ["string", "null"]}}})";

constexpr std::string_view kNewMessage = R"({
  "type": "object", "required": ["text"],
  "properties": {
    "text": {"type": "string", "minLength": 1, "maxLength": 200000},
    "mode": {"enum": ["build", "plan"], "description": "plan: no files shall be changed"}}})";

constexpr std::string_view kExchange = R"({
  "type": "object", "required": ["message", "answer"],
  "properties": {
    "message": {"$ref": "#/components/schemas/Message"},
    "answer": {"$ref": "#/components/schemas/Message"}}})";

constexpr std::string_view kHistory = R"({
  "type": "object", "required": ["messages"],
  "properties": {
    "messages": {"type": "array", "items": {"$ref": "#/components/schemas/Message"}},
    "before": {"type": "integer", "description": "ask with it for earlier ones, if it is there"}}})";

constexpr std::string_view kStop = R"({
  "type": "object",
  "properties": {"all": {"type": "boolean", "description": "also the messages that wait"}}})";

constexpr std::string_view kIds = R"({
  "type": "object", "required": ["ids"],
  "properties": {"ids": {"type": "array", "minItems": 1, "maxItems": 200, "uniqueItems": true,
    "items": {"type": "string", "minLength": 1, "maxLength": 100}}}})";

constexpr std::string_view kDeleted = R"({
  "type": "object", "required": ["deleted", "missing"],
  "properties": {
    "deleted": {"type": "array", "items": {"type": "string"}},
    "missing": {"type": "array", "items": {"type": "string"}}}})";

constexpr std::string_view kModel = R"({
  "type": "object", "required": ["model"],
  "properties": {"model": {"type": "string", "maxLength": 200}}})";

constexpr std::string_view kModels = R"({"type":"object","properties":{"models":{"type":"array",
  "items":{"type":"object","properties":{"id":{"type":"string"},
    "agents":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},
      "name":{"type":"string"}}}},
    "builds":{"type":"boolean","description":"it is llm_model, which writes builds"},
    "offered":{"type":"boolean","description":"by the server that built-in agents ask"}}}}}})";

constexpr std::string_view kSandbox = R"({
  "type": "object", "required": ["sandboxId", "status", "createdAt"],
  "properties": {
    "sandboxId": {"type": "string"},
    "status": {"enum": ["provisioning", "active", "paused", "error", "terminated"]},
    "sessionId": {"type": ["string", "null"]},
    "createdAt": {"type": "string", "format": "date-time"},
    "lastUsedAt": {"type": "string", "format": "date-time"}}})";

constexpr std::string_view kNewSandbox = R"({
  "type": "object",
  "properties": {
    "sessionId": {"type": "string", "maxLength": 100, "description": "the sandbox of this session"},
    "template": {"type": "string", "maxLength": 200}}})";

json::value OrNull(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

// SECURITY: variables may hold keys; they are set, not shown.
json::object OptionsOf(const store::SessionRow& row) {
  json::object options = ParseObject(row.options);
  if (json::value* env = options.if_contains("env"); env && env->is_object())
    for (auto& [name, value] : env->as_object()) value = "***";
  return options;
}

std::string_view AliasOf(std::string_view status) {
  if (status == "running") return "active";
  if (status == "creating" || status == "resuming") return "provisioning";
  if (status == "pausing") return "paused";
  if (status == "terminating") return "terminated";
  return status;
}

}  // namespace

json::object Encode(const session::SessionView& view) {
  const store::SessionRow& row = view.row;
  json::object shown{{"id", row.id},
                     {"title", row.title},
                     {"status", row.status},
                     {"status_reason", row.status_reason},
                     {"error", row.error},
                     {"sandbox_id", OrNull(row.sandbox_id)},
                     {"sandboxId", OrNull(row.sandbox_id)},
                     {"repo_url", row.repo_url},
                     {"base_branch", row.base_branch},
                     {"branch", row.branch},
                     {"agent_id", OrNull(row.agent_id)},
                     {"model", row.model},
                     {"template", row.template_name},
                     {"options", OptionsOf(row)},
                     {"pull_request_url", row.pull_request_url},
                     {"pull_request_number", row.pull_request_number},
                     {"pull_request_state", row.pull_request_state},
                     {"generating", !view.answering.empty()},
                     {"answer_id", OrNull(view.answering)},
                     {"queued", view.queued},
                     {"running_ms", session::RunningMs(row, Now())},
                     {"created_at", FormatTime(row.created_at)},
                     {"last_used_at", FormatTime(row.last_used_at)},
                     {"archived_at", EncodeOptionalTime(row.archived_at)}};
  if (view.first) {
    shown["message"] = Encode(view.first->message);
    shown["answer"] = Encode(view.first->answer);
  }
  return shown;
}

json::object Encode(const store::MessageRow& message) {
  return {{"id", message.id},
          {"session_id", message.session_id},
          {"seq", message.seq},
          {"role", message.role},
          {"state", message.state},
          {"mode", message.mode},
          {"content", message.content},
          {"parts", work::ParseArray(message.parts)},
          {"reply_to", OrNull(message.reply_to)},
          {"run_id", message.run_id},
          {"model", message.model},
          {"tokens_in", message.tokens_in},
          {"tokens_out", message.tokens_out},
          {"dollars", message.dollars},
          {"commit_sha", message.commit_sha},
          {"error", message.error},
          {"created_at", FormatTime(message.created_at)},
          {"started_at", EncodeOptionalTime(message.started_at)},
          {"finished_at", EncodeOptionalTime(message.finished_at)}};
}

json::object Encode(const session::Exchange& exchange) {
  return {{"message", Encode(exchange.message)}, {"answer", Encode(exchange.answer)}};
}

json::object Encode(const session::Model& model) {
  json::array agents;
  for (const store::AgentRow& agent : model.agents)
    agents.push_back({{"id", agent.id}, {"name", agent.name}});
  return {{"id", model.name},
          {"agents", std::move(agents)},
          {"builds", model.builds},
          {"offered", model.offered}};
}

json::object EncodeSessionSandbox(const work::SandboxRow& row, const std::string& session_id) {
  return {{"sandboxId", row.id},
          {"status", AliasOf(row.status)},
          {"sessionId", OrNull(session_id)},
          {"createdAt", FormatTime(row.created_at)},
          {"lastUsedAt", FormatTime(row.last_used_at)}};
}

session::NewSession ReadNewSession(const json::object& body) {
  session::NewSession made{.title = TextOf(body, "title"),
                           .repo_url = TextOf(body, "repo_url"),
                           .base_branch = TextOf(body, "base_branch"),
                           .agent_id = TextOf(body, "agent_id"),
                           .model = TextOf(body, "model"),
                           .template_name = TextOf(body, "template"),
                           .options = work::ObjectIn(body, "options"),
                           .message = TextOf(body, "message")};
  if (auto mode = OptionalText(body, "mode")) made.mode = *mode;
  return made;
}

session::SessionChange ReadSessionChange(const json::object& body) {
  return {.title = OptionalText(body, "title"),
          .agent_id = OptionalText(body, "agent_id"),
          .model = OptionalText(body, "model"),
          .archived = FlagField(body, "archived")};
}

void AddSessionSchemas(Frame& frame) {
  frame.AddSchema("SessionOptions", kOptions);
  frame.AddSchema("NewSession", kNewSession);
  frame.AddSchema("SessionChange", kSessionChange);
  frame.AddSchema("SessionView", kSession);
  frame.AddSchema("SessionList", ListSchema("sessions", "SessionView"));
  frame.AddSchema("Message", kMessage);
  frame.AddSchema("NewMessage", kNewMessage);
  frame.AddSchema("MessageExchange", kExchange);
  frame.AddSchema("MessageHistory", kHistory);
  frame.AddSchema("AnswerStop", kStop);
  frame.AddSchema("SessionIds", kIds);
  frame.AddSchema("DeletedSessions", kDeleted);
  frame.AddSchema("SessionModel", kModel);
  frame.AddSchema("ModelList", kModels);
  frame.AddSchema("SessionSandbox", kSandbox);
  frame.AddSchema("NewSessionSandbox", kNewSandbox);
}

}  // namespace caisson::api

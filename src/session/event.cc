#include "session/event.h"

#include <boost/json/serialize.hpp>

#include "work/json_fields.h"

namespace caisson::session {
namespace {

// The whole text is in the row.
constexpr size_t kMaxText = 8'000;

}  // namespace

store::EventRow About(const store::SessionRow& session, std::string type, json::object data) {
  store::EventRow event;
  event.at = Now();
  event.type = std::move(type);
  event.owner_id = session.owner_id;
  event.agent_id = session.agent_id;
  event.sandbox_id = session.sandbox_id;
  event.session_id = session.id;
  event.data = json::serialize(data);
  return event;
}

store::EventRow About(const store::SessionRow& session, const store::MessageRow& answer,
                      std::string type, json::object data) {
  store::EventRow event = About(session, std::move(type), std::move(data));
  event.execution_id = answer.id;
  event.run_id = answer.run_id;
  return event;
}

json::object SessionData(const store::SessionRow& session) {
  json::object data{
      {"title", session.title}, {"status", session.status}, {"reason", session.status_reason}};
  if (!session.error.empty()) data["error"] = session.error;
  if (!session.model.empty()) data["model"] = session.model;
  if (!session.branch.empty()) data["branch"] = session.branch;
  if (session.pull_request_number > 0) {
    data["pull_request_number"] = session.pull_request_number;
    data["pull_request_url"] = session.pull_request_url;
    data["pull_request_state"] = session.pull_request_state;
  }
  return data;
}

json::object MessageData(const store::MessageRow& message) {
  json::object data{{"message_id", message.id},
                    {"seq", message.seq},
                    {"role", message.role},
                    {"state", message.state},
                    {"content", work::Shorten(message.content, kMaxText)}};
  if (!message.reply_to.empty()) data["reply_to"] = message.reply_to;
  if (!message.error.empty()) data["error"] = message.error;
  if (!message.commit_sha.empty()) data["commit_sha"] = message.commit_sha;
  return data;
}

}  // namespace caisson::session

#include "session/messages.h"

#include "base/id.h"
#include "session/delta_teller.h"
#include "session/event.h"
#include "work/costs.h"
#include "work/json_fields.h"

namespace caisson::session {
namespace {

using store::MessageRow;
using store::Select;
using store::SessionRow;
using store::Transaction;

constexpr size_t kMaxText = 200'000;

Select<MessageRow> Of(const std::string& session_id) {
  return Select<MessageRow>().Eq(&MessageRow::session_id, session_id);
}

Result<int64_t> NextSeq(Transaction& tx, const std::string& session_id) {
  TRY_ASSIGN(auto last, tx.First(Of(session_id).Order(&MessageRow::seq, true)));
  return last ? last->seq + 1 : 1;
}

Result<std::optional<MessageRow>> AnswerTo(Transaction& tx, const MessageRow& message) {
  return tx.First(Of(message.session_id).Eq(&MessageRow::seq, message.seq + 1));
}

Status CheckQueue(Transaction& tx, const Config& config, const SessionRow& session) {
  TRY_ASSIGN(
      int64_t waiting,
      tx.Count(Of(session.id).Eq(&MessageRow::state, "queued").Eq(&MessageRow::role, "user")));
  if (waiting < config.session_queue) return {};
  return Fail(Code::kResourceExhausted,
              "{} messages of this session wait for the agent already (session_queue)", waiting);
}

// What had been said before it ended early.
Result<std::string> PartialText(Transaction& tx, const std::string& answer_id) {
  TRY_ASSIGN(ToldText told, ReadTold(tx, answer_id));
  return work::Shorten(told.Text(), kMaxText);
}

Status EndPair(Transaction& tx, work::Platform& platform, const SessionRow& session,
               MessageRow message, const std::string& state, const std::string& error) {
  TRY_ASSIGN(auto answer, AnswerTo(tx, message));
  message.state = state;
  message.finished_at = Now();
  TRY(SaveMessage(tx, platform, session, message));
  if (!answer) return {};
  answer->state = state;
  answer->error = error;
  answer->finished_at = message.finished_at;
  if (answer->content.empty() && state != "done") {
    TRY_ASSIGN(answer->content, PartialText(tx, answer->id));
  }
  return SaveMessage(tx, platform, session, *answer);
}

}  // namespace

Status SaveMessage(Transaction& tx, work::Platform& platform, const SessionRow& session,
                   const MessageRow& message) {
  TRY(tx.Update(message));
  TRY(platform.log.Emit(tx, About(session, "session_message", MessageData(message))));
  return {};
}

Result<Exchange> AddMessage(Transaction& tx, work::Platform& platform, SessionRow& session,
                            const std::string& text, const std::string& mode) {
  TRY(work::CheckText(text, "a message", 1, kMaxText));
  if (session.agent_id.empty())
    return Fail(Code::kFailedPrecondition,
                "nobody answers in this session: give it an agent (agent_id)");
  TRY(CheckQueue(tx, platform.config, session));
  TRY(work::CheckBudget(tx, platform.config, session.owner_id));
  TRY_ASSIGN(int64_t seq, NextSeq(tx, session.id));
  Exchange made;
  made.message = {.id = RandomUuid(),
                  .session_id = session.id,
                  .owner_id = session.owner_id,
                  .seq = seq,
                  .role = "user",
                  .state = "queued",
                  .mode = mode,
                  .content = text,
                  .created_at = Now()};
  made.answer = made.message;
  made.answer.id = RandomUuid();
  made.answer.seq = seq + 1;
  made.answer.role = "assistant";
  made.answer.content.clear();
  made.answer.reply_to = made.message.id;
  TRY(tx.Insert(made.message));
  TRY(tx.Insert(made.answer));
  TRY(platform.log.Emit(tx, About(session, "session_message", MessageData(made.message))));
  session.last_used_at = Now();
  TRY(tx.Update(session));
  TRY(StartNext(tx, platform, session));
  TRY_ASSIGN(made.message, tx.Need<MessageRow>(made.message.id, "message"));
  TRY_ASSIGN(made.answer, tx.Need<MessageRow>(made.answer.id, "message"));
  return made;
}

Status AddNote(Transaction& tx, work::Platform& platform, const SessionRow& session,
               const std::string& text) {
  TRY_ASSIGN(int64_t seq, NextSeq(tx, session.id));
  MessageRow note{.id = RandomUuid(),
                  .session_id = session.id,
                  .owner_id = session.owner_id,
                  .seq = seq,
                  .role = "system",
                  .content = text,
                  .created_at = Now(),
                  .finished_at = Now()};
  TRY(tx.Insert(note));
  TRY(platform.log.Emit(tx, About(session, "session_message", MessageData(note))));
  return {};
}

Result<std::optional<MessageRow>> Answering(Transaction& tx, const std::string& session_id) {
  return tx.First(Of(session_id).Eq(&MessageRow::state, "running").Eq(&MessageRow::role, "user"));
}

Status StartNext(Transaction& tx, work::Platform& platform, const SessionRow& session) {
  TRY_ASSIGN(auto now, Answering(tx, session.id));
  if (now) return {};
  TRY_ASSIGN(auto next, tx.First(Of(session.id)
                                     .Eq(&MessageRow::state, "queued")
                                     .Eq(&MessageRow::role, "user")
                                     .Order(&MessageRow::seq)));
  if (!next) return {};
  TRY_ASSIGN(auto answer, AnswerTo(tx, *next));
  if (!answer) return Fail(Code::kInternal, "message {} has no place for its answer", next->id);
  std::string run_id = RandomUuid();
  for (MessageRow* row : {&*next, &*answer}) {
    row->state = "running";
    row->run_id = run_id;
    row->model = session.model;
    row->started_at = Now();
    TRY(SaveMessage(tx, platform, session, *row));
  }
  return platform.flow.StartRun(tx,
                                {.id = run_id,
                                 .definition = "message",
                                 .owner_id = session.owner_id,
                                 .execution_id = answer->id,
                                 .input = {{"session_id", session.id}, {"message_id", next->id}},
                                 .user_key = session.owner_id});
}

Status EndMessage(Transaction& tx, work::Platform& platform, const store::RunRow& run) {
  json::object input = work::ParseObject(run.input);
  TRY_ASSIGN(auto session, tx.Get<SessionRow>(work::TextOf(input, "session_id")));
  TRY_ASSIGN(auto message, tx.Get<MessageRow>(work::TextOf(input, "message_id")));
  if (!session || !message || message->run_id != run.id || message->state != "running") return {};
  std::string state = run.state == "succeeded"  ? "done"
                      : run.state == "canceled" ? "stopped"
                                                : "failed";
  TRY(EndPair(tx, platform, *session, *message, state,
              run.state == "canceled" ? run.cancel_reason : run.error));
  session->last_used_at = Now();
  TRY(tx.Update(*session));
  return StartNext(tx, platform, *session);
}

Result<bool> StopMessages(Transaction& tx, work::Platform& platform, const SessionRow& session,
                          bool all, const std::string& reason) {
  bool stopped = false;
  if (all) {
    TRY_ASSIGN(
        auto waiting,
        tx.List(Of(session.id).Eq(&MessageRow::state, "queued").Eq(&MessageRow::role, "user")));
    for (const MessageRow& message : waiting)
      TRY(EndPair(tx, platform, session, message, "stopped", reason));
    stopped = !waiting.empty();
  }
  TRY_ASSIGN(auto now, Answering(tx, session.id));
  if (!now) return stopped;
  TRY_ASSIGN(bool canceled, platform.flow.Cancel(tx, now->run_id, reason));
  return stopped || canceled;
}

}  // namespace caisson::session

// The messages of a session: written in pairs, a user's and the place of its answer, and answered
// one after the other. All of it inside the caller's transaction.
#pragma once

#include "store/flow_rows.h"
#include "store/session_rows.h"
#include "work/platform.h"

namespace caisson::session {

struct Exchange {
  store::MessageRow message, answer;
};

// kResourceExhausted: session_queue messages wait already, or the budget is used up;
// kFailedPrecondition: the session has no agent. flow::Engine::Wake() afterwards.
Result<Exchange> AddMessage(store::Transaction& tx, work::Platform& platform,
                            store::SessionRow& session, const std::string& text,
                            const std::string& mode);
// Something the platform has to say to the user.
Status AddNote(store::Transaction& tx, work::Platform& platform, const store::SessionRow& session,
               const std::string& text);
// The message that is being answered now, nothing if none is.
Result<std::optional<store::MessageRow>> Answering(store::Transaction& tx,
                                                   const std::string& session_id);
// Begins with the first message that waits, unless one is being answered.
Status StartNext(store::Transaction& tx, work::Platform& platform,
                 const store::SessionRow& session);
// The run of a message is over: the pair says how, and the next one begins.
Status EndMessage(store::Transaction& tx, work::Platform& platform, const store::RunRow& run);
// Calls the answer off that is being written, and with `all` also those that wait. False if there
// was nothing.
Result<bool> StopMessages(store::Transaction& tx, work::Platform& platform,
                          const store::SessionRow& session, bool all, const std::string& reason);
// Writes the row and tells it.
Status SaveMessage(store::Transaction& tx, work::Platform& platform,
                   const store::SessionRow& session, const store::MessageRow& message);

}  // namespace caisson::session

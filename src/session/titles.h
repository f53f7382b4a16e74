// The names of sessions that nobody named: the words of their first message, until a small model
// (session_title_model) has thought of a better one. Whatever goes wrong there leaves the words.
#pragma once

#include <string>
#include <string_view>

#include "flow/engine.h"
#include "store/session_rows.h"
#include "work/chat_model.h"
#include "work/platform.h"

namespace caisson::session {

// Of a session without a message.
inline constexpr std::string_view kUntitled = "New session";
inline constexpr size_t kMaxGivenTitle = 80;  // bytes

// The first line of a message, cut.
std::string WordsOf(std::string_view message);
// What a model said, as a title: one line, without decoration, at most kMaxGivenTitle and a mark
// that it was cut. "" if nothing is left.
std::string CleanTitle(std::string_view said);

// In the transaction of the first message: asks a model for a better title, if one is set.
Status StartNaming(store::Transaction& tx, work::Platform& platform,
                   const store::SessionRow& session, const store::MessageRow& message);

// The workflow "title" does that: one step, one question.
class Titles {
 public:
  Titles(asio::any_io_executor executor, work::Platform platform)
      : platform_(platform), model_(std::move(executor), platform.config) {}

  // For flow::Engine::Define(); refers to this object.
  flow::Definition Define();

 private:
  struct Subject {
    store::SessionRow session;
    std::string message;
  };
  Task<flow::Outcome> Name(flow::StepContext context);
  Task<Result<Subject>> Load(flow::StepContext context);

  work::Platform platform_;
  work::ChatModel model_;
};

}  // namespace caisson::session

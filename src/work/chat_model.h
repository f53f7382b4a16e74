// A server with OpenAI's chat completions: the model of the settings llm_*. It is asked by this
// server only, so its key never enters a sandbox.
#pragma once

#include <boost/json/array.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/async.h"
#include "base/config.h"
#include "events/redactor.h"
#include "git/upstream.h"
#include "http/client.h"
#include "http/message.h"

namespace caisson::work {

namespace json = boost::json;

struct Completion {
  std::string content;
  std::string finish_reason;  // "stop", "length", "tool_calls", "content_filter", ...
  std::string refusal;
  std::string model;
  json::array tool_calls;  // as the server wrote them
  int64_t tokens_in = 0, tokens_out = 0;
};
// The body of a 200. kDataLoss if it is no completion.
Result<Completion> ReadCompletion(std::string_view body);

// Of any other status: kUnauthenticated, kPermissionDenied, kNotFound, kInvalidArgument,
// kUnavailable (also of 429), kFailedPrecondition. SECURITY: the words of the server are part of
// the message, but not of a refused key, which it may repeat.
Error ErrorOf(const http::Response& answer);

// A piece of what the model says, as it comes. `first`: the answer begins with it; what came before
// belongs to an answer that was broken off.
using OnText = std::function<void(std::string_view piece, bool first)>;

struct Question {
  std::string model;  // "" = the setting
  json::array messages;
  json::array tools;       // empty = none
  bool json_mode = false;  // the answer shall be a JSON object
  // If somebody listens the answer is asked for as a stream. A server that does not stream, or not
  // with the tokens that it counts, answers as a whole, and nothing is heard here.
  OnText on_text = {};
};

class ChatModel {
 public:
  ChatModel(asio::any_io_executor executor, const Config& config);

  // kFailedPrecondition: there is no model to ask.
  Status CheckSettings() const;
  // Waits for its turn, and repeats what the server was too busy for, within llm_timeout_ms.
  Task<Result<Completion>> Ask(Question question);
  // What the server offers, by name. kUnimplemented if it does not tell.
  Task<Result<std::vector<std::string>>> Names();
  // Without the key and what looks like one.
  std::string Clean(std::string_view text) const;
  Error Clean(const Error& error) const { return {error.code(), Clean(error.message())}; }

 private:
  using Clock = std::chrono::steady_clock;
  // What not every server takes; left out once it said so.
  struct Dialect {
    bool json_mode = true;
    bool old_limit = true;  // "max_tokens", which newer models call "max_completion_tokens"
    bool stream = true;     // with `include_usage`: what is not counted is not paid for
  };
  struct Answer {
    http::Response response;
    std::optional<Completion> streamed;
  };

  Task<Status> WaitForTurn(Clock::time_point end);
  Task<Result<Completion>> AskInTurn(Question question, Clock::time_point end);
  Task<Result<Answer>> Send(std::string body, OnText on_text, Clock::time_point end);
  // A body makes it a POST.
  Task<Result<Answer>> Exchange(std::string path, std::string body, OnText on_text);
  Task<Result<Answer>> Read(http::ClientConnection& connection, OnText on_text);
  std::string Body(const Question& question) const;
  bool Adapt(const http::Response& answer);

  Config config_;
  Result<git::Origin> origin_;
  events::Redactor redactor_;
  Dialect dialect_;
  size_t asking_ = 0;
  Condition freed_;
};

}  // namespace caisson::work

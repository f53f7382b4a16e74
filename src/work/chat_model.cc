#include "work/chat_model.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/text.h"
#include "events/redact_patterns.h"
#include "work/chat_stream.h"
#include "work/json_fields.h"

namespace caisson::work {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMaxAnswer = 16 << 20;
constexpr size_t kStep = 16 << 10;
constexpr size_t kMaxQuestions = 8;  // at once; others wait for their turn
constexpr size_t kMaxWords = 300;
constexpr size_t kMaxNames = 2'000;  // of models
constexpr milliseconds kFirstPause{500};
constexpr int kMaxRepeats = 5;  // of one question that the server did not answer

milliseconds Left(std::chrono::steady_clock::time_point end) {
  auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
  return std::max(left, milliseconds(1));
}

int64_t CountOf(const json::object& usage, std::string_view name) {
  return std::max<int64_t>(IntOf(usage, name), 0);
}

// {"error": {"message": "..."}}, {"error": "..."} or {"message": "..."}.
std::string WordsOf(const http::Response& answer) {
  json::object body = ParseObject(answer.body);
  std::string words = TextOf(ObjectIn(body, "error"), "message");
  if (words.empty()) words = TextOf(body, "error");
  if (words.empty()) words = TextOf(body, "message");
  if (words.empty()) words = std::string(http::ReasonPhrase(answer.status));
  return Shorten(events::RedactPatterns(std::move(words)), kMaxWords);
}

}  // namespace

Result<Completion> ReadCompletion(std::string_view body) {
  json::object object = ParseObject(body);
  const json::array& choices = ArrayIn(object, "choices");
  if (choices.empty() || !choices[0].is_object())
    return Fail(Code::kDataLoss, "the model server's answer is no chat completion");
  const json::object& choice = choices[0].get_object();
  const json::object& message = ObjectIn(choice, "message");
  const json::object& usage = ObjectIn(object, "usage");
  return Completion{.content = TextOf(message, "content"),
                    .finish_reason = TextOf(choice, "finish_reason"),
                    .refusal = TextOf(message, "refusal"),
                    .model = TextOf(object, "model"),
                    .tool_calls = ArrayIn(message, "tool_calls"),
                    .tokens_in = CountOf(usage, "prompt_tokens"),
                    .tokens_out = CountOf(usage, "completion_tokens")};
}

Error ErrorOf(const http::Response& answer) {
  switch (answer.status) {
    case 401:
      return {Code::kUnauthenticated, "the model server does not accept the key (llm_api_key)"};
    case 403:
      return {Code::kPermissionDenied, "the model server does not allow this with the key it got"};
    case 404:
      return {Code::kNotFound,
              fmt::format("the model server has no such model or address: {}", WordsOf(answer))};
    case 408:
    case 429:
      return {Code::kUnavailable, fmt::format("the model server has too much to do (status {}): {}",
                                              answer.status, WordsOf(answer))};
    default:
      break;
  }
  if (answer.status >= 500)
    return {Code::kUnavailable, fmt::format("the model server does not work (status {}): {}",
                                            answer.status, WordsOf(answer))};
  if (answer.status >= 400)
    return {Code::kInvalidArgument,
            fmt::format("the model server refuses the request: {}", WordsOf(answer))};
  return {Code::kFailedPrecondition,
          fmt::format("the model server answers with status {}; is llm_base_url right?",
                      answer.status)};
}

ChatModel::ChatModel(asio::any_io_executor executor, const Config& config)
    : config_(config), origin_(git::ParseOrigin(config.llm_base_url)), freed_(executor) {
  redactor_.Add(config.llm_api_key);
}

// SECURITY: nobody should ever repeat the key to us, and if somebody does it goes no further.
std::string ChatModel::Clean(std::string_view text) const {
  std::string clean = redactor_.Redact(text);
  const std::string& key = config_.llm_api_key;  // the redactor does not take short ones
  for (size_t at = 0; !key.empty() && (at = clean.find(key, at)) != clean.npos; at += 3)
    clean.replace(at, key.size(), "***");
  return events::RedactPatterns(std::move(clean));
}

Status ChatModel::CheckSettings() const {
  if (config_.llm_base_url.empty() || config_.llm_model.empty())
    return Fail(Code::kFailedPrecondition,
                "there is no model to ask: set llm_base_url and llm_model");
  // The address is not shown: somebody may have put a password into it.
  if (!origin_)
    return Fail(Code::kFailedPrecondition, "llm_base_url must be https://HOST/PATH or http://...");
  return {};
}

std::string ChatModel::Body(const Question& question) const {
  json::object body{{"model", question.model.empty() ? config_.llm_model : question.model},
                    {"messages", question.messages}};
  body["stream"] = question.on_text && dialect_.stream;
  if (body["stream"].as_bool()) body["stream_options"] = json::object{{"include_usage", true}};
  body[dialect_.old_limit ? "max_tokens" : "max_completion_tokens"] = config_.llm_max_tokens;
  if (!question.tools.empty()) body["tools"] = question.tools;
  if (question.json_mode && dialect_.json_mode)
    body["response_format"] = json::object{{"type", "json_object"}};
  return json::serialize(body);
}

// True if the request should be sent again, as the server's words ask for.
bool ChatModel::Adapt(const http::Response& answer) {
  if (answer.status != 400 && answer.status != 422) return false;
  if (answer.body.find("max_completion_tokens") != std::string::npos)
    return std::exchange(dialect_.old_limit, false);
  if (answer.body.find("response_format") != std::string::npos)
    return std::exchange(dialect_.json_mode, false);
  if (answer.body.find("stream") != std::string::npos) return std::exchange(dialect_.stream, false);
  return false;
}

Task<Status> ChatModel::WaitForTurn(Clock::time_point end) {
  while (asking_ >= kMaxQuestions)
    if (!co_await freed_.Wait(end) && asking_ >= kMaxQuestions)
      co_return Fail(Code::kUnavailable, "too many ask the model at the same time");
  co_return Status();
}

Task<Result<Completion>> ChatModel::Ask(Question question) {
  CO_TRY(CheckSettings());
  auto end = Clock::now() + milliseconds(config_.llm_timeout_ms);
  CO_TRY(co_await WaitForTurn(end));
  struct Turn {
    ChatModel& model;
    explicit Turn(ChatModel& m) : model(m) { ++model.asking_; }
    ~Turn() {
      --model.asking_;
      model.freed_.Notify();
    }
  } turn(*this);
  auto answer = co_await AskInTurn(std::move(question), end);
  if (!answer) co_return tl::unexpected(Clean(answer.error()));
  co_return answer;
}

Task<Result<Completion>> ChatModel::AskInTurn(Question question, Clock::time_point end) {
  for (;;) {
    CO_TRY_ASSIGN(Answer answer, co_await Send(Body(question), question.on_text, end));
    if (answer.streamed) co_return std::move(*answer.streamed);
    if (answer.response.status == 200) co_return ReadCompletion(answer.response.body);
    if (!Adapt(answer.response)) co_return tl::unexpected(ErrorOf(answer.response));
  }
}

// Repeats what the server was too busy for, as long as there is time.
Task<Result<ChatModel::Answer>> ChatModel::Send(std::string body, OnText on_text,
                                                Clock::time_point end) {
  milliseconds pause = kFirstPause;
  for (int repeat = 1;; ++repeat, pause *= 2) {
    auto answer = co_await WithDeadline(Left(end), "asking the model",
                                        Exchange("/chat/completions", body, on_text));
    std::optional<Error> error;
    if (!answer)
      error = answer.error();
    else if (Error told = ErrorOf(answer->response);
             answer->response.status != 200 && told.code() == Code::kUnavailable)
      error = told;
    if (!error) co_return answer;
    if (error->code() != Code::kUnavailable || repeat == kMaxRepeats)
      co_return tl::unexpected(*error);
    milliseconds wait = pause;
    if (answer)
      if (auto asked = ParseInt<uint16_t>(Trim(answer->response.headers.Value("Retry-After"))))
        wait = std::chrono::seconds(*asked);
    if (Clock::now() + wait >= end)
      co_return Fail(Code::kUnavailable, "{}; another attempt may be made in {} s",
                     error->message(), std::chrono::ceil<std::chrono::seconds>(wait).count());
    co_await SleepFor(wait);
  }
}

Task<Result<std::vector<std::string>>> ChatModel::Names() {
  CO_TRY(CheckSettings());
  auto asked = co_await WithDeadline(milliseconds(config_.llm_timeout_ms), "asking for the models",
                                     Exchange("/models", "", {}));
  if (!asked) co_return tl::unexpected(Clean(asked.error()));
  if (asked->response.status != 200)
    co_return Fail(Code::kUnimplemented, "the model server does not tell its models (status {})",
                   asked->response.status);
  json::object body = ParseObject(asked->response.body);
  std::vector<std::string> names;
  for (const json::value& one : ArrayIn(body, "data"))
    if (std::string name = one.is_object() ? TextOf(one.get_object(), "id") : ""; !name.empty())
      if (names.size() < kMaxNames) names.push_back(std::move(name));
  if (names.empty()) co_return Fail(Code::kUnimplemented, "the model server names no models");
  std::ranges::sort(names);
  co_return names;
}

Task<Result<ChatModel::Answer>> ChatModel::Exchange(std::string path, std::string body,
                                                    OnText on_text) {
  // The deadline of the question comes first.
  milliseconds stall(config_.llm_timeout_ms + 1'000);
  auto connection = co_await git::ConnectTo(*origin_, {.stall_timeout = stall});
  if (!connection)
    co_return Fail(
        connection.error().code() == Code::kCanceled ? Code::kCanceled : Code::kUnavailable,
        "the model server cannot be reached: {}", connection.error().message());
  http::RequestHead head;
  head.method = body.empty() ? "GET" : "POST";
  head.target = origin_->path + path;
  head.headers = {{"Host", origin_->host},
                  {"Accept", "application/json, text/event-stream"},
                  {"Content-Type", "application/json"},
                  {"User-Agent", "caisson/" CAISSON_VERSION}};
  if (!config_.llm_api_key.empty())
    head.headers.Set("Authorization", "Bearer " + config_.llm_api_key);
  Status sent = co_await (*connection)->SendHead(std::move(head), body.size(), body);
  // A server that refuses a large body may close before it has all of it; its answer counts.
  auto answer = co_await Read(**connection, std::move(on_text));
  if (answer || answer.error().code() == Code::kCanceled ||
      answer.error().code() == Code::kDataLoss)
    co_return answer;
  co_return Fail(Code::kUnavailable, "the model server did not answer: {}",
                 (sent ? answer.error() : sent.error()).message());
}

Task<Result<ChatModel::Answer>> ChatModel::Read(http::ClientConnection& connection,
                                                OnText on_text) {
  Answer answer;
  CO_TRY_ASSIGN(static_cast<http::ResponseHead&>(answer.response), co_await connection.ReadHead());
  bool streams = answer.response.status == 200 &&
                 answer.response.headers.Value("Content-Type").starts_with("text/event-stream");
  ChatStream stream(std::move(on_text));
  std::string buffer(kStep, '\0');
  while (!stream.done()) {
    CO_TRY_ASSIGN(size_t size, co_await connection.ReadBody(buffer));
    if (size == 0) break;
    if (streams)
      CO_TRY(stream.Feed(std::string_view(buffer).substr(0, size)));
    else
      answer.response.body.append(buffer, 0, size);
    if (answer.response.body.size() > kMaxAnswer)
      co_return Fail(Code::kDataLoss, "the model server's answer is larger than {} bytes",
                     kMaxAnswer);
  }
  if (!streams) co_return answer;
  CO_TRY_ASSIGN(answer.streamed, stream.Finish());
  if (!stream.has_usage()) dialect_.stream = false;
  co_return answer;
}

}  // namespace caisson::work

#include <boost/json.hpp>

#include "build/llm_answer.h"
#include "build/llm_prompt.h"
#include "build/runner.h"
#include "work/chat_model.h"

namespace caisson::build {
namespace {

namespace json = boost::json;
using work::Completion;

void Count(const Completion& completion, RunnerResult& result) {
  result.tokens_in += completion.tokens_in;
  result.tokens_out += completion.tokens_out;
  if (!completion.model.empty()) result.model = completion.model;
}

class LlmRunner final : public Runner {
 public:
  LlmRunner(asio::any_io_executor executor, const Config& config)
      : config_(config), model_(std::move(executor), config) {}

  std::string_view name() const override { return "llm"; }
  Task<Result<RunnerResult>> Run(RunnerJob job) override;

 private:
  // Why an answer cannot be used is told by kDataLoss.
  Result<LlmAnswer> Use(const Completion& completion, const RunnerJob& job) const;

  Config config_;
  work::ChatModel model_;
};

Task<Result<RunnerResult>> LlmRunner::Run(RunnerJob job) {
  CO_TRY(model_.CheckSettings());
  RunnerResult result{.model = config_.llm_model};
  json::array messages = FirstMessages(job);
  auto say = [&](std::string_view source, std::string_view text) {
    if (job.log) job.log(source, model_.Clean(text));
  };
  for (int64_t attempt = 1;; ++attempt) {
    say("system", fmt::format("asking {} (attempt {} of {})", config_.llm_model, attempt,
                              config_.llm_attempts));
    auto completion = co_await model_.Ask({.messages = messages, .json_mode = true});
    if (completion) Count(*completion, result);
    Result<LlmAnswer> answer =
        completion.and_then([&](const Completion& read) { return Use(read, job); });
    if (answer) {
      if (!answer->note.empty()) say("stdout", answer->note);
      result.changes = std::move(answer->changes);
      co_return result;
    }
    if (answer.error().code() != Code::kDataLoss || attempt >= config_.llm_attempts)
      co_return tl::unexpected(model_.Clean(answer.error()));
    say("system", "the answer cannot be used: " + answer.error().message());
    // What broke on its way is asked for again as it was.
    if (completion) AddComplaint(messages, completion->content, answer.error().message());
  }
}

Result<LlmAnswer> LlmRunner::Use(const Completion& completion, const RunnerJob& job) const {
  if (!completion.refusal.empty() || completion.finish_reason == "content_filter")
    return Fail(Code::kFailedPrecondition, "the model refuses to do this");
  if (completion.finish_reason == "length")
    return Fail(
        Code::kDataLoss,
        "it was cut off after {} tokens (llm_max_tokens); fewer or smaller files are needed",
        config_.llm_max_tokens);
  TRY_ASSIGN(LlmAnswer answer, ReadAnswer(completion.content));
  auto files = Apply(job.files, answer.changes);
  Status fits = files ? CheckFiles(*files, config_) : tl::unexpected(files.error());
  if (!fits) return Fail(Code::kDataLoss, "{}", fits.error().message());
  return answer;
}

}  // namespace

std::unique_ptr<Runner> MakeLlmRunner(asio::any_io_executor executor, const Config& config) {
  return std::make_unique<LlmRunner>(std::move(executor), config);
}

}  // namespace caisson::build

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <deque>

#include "build/runner.h"
#include "http/test_support.h"

namespace caisson::build {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
namespace json = boost::json;

constexpr std::string_view kKey = "k3y-of-the-model-server";
constexpr std::string_view kGood =
    R"({"changes":[{"path":"index.html","new_content":"<h1>Ships</h1>"}],"note":"A page."})";

http::Response Completed(std::string_view content, std::string_view finish = "stop") {
  return http::Response::Json(
      200,
      {{"model", "model-1-2026"},
       {"choices", json::array{{{"finish_reason", finish}, {"message", {{"content", content}}}}}},
       {"usage", {{"prompt_tokens", 100}, {"completion_tokens", 20}}}});
}

// A server with OpenAI's chat completions that answers what the test put there, in turn.
class LlmRunnerTest : public ::testing::Test {
 protected:
  LlmRunnerTest() : server_([this](http::Exchange& exchange) { return Serve(exchange); }) {
    config_.llm_base_url = fmt::format("http://{}/v1/", server_.address());
    config_.llm_api_key = kKey;
    config_.llm_model = "model-1";
    config_.llm_timeout_ms = 15'000;
  }

  Task<void> Serve(http::Exchange& exchange) {
    auto body = co_await exchange.ReadAll(1 << 20);
    questions_.push_back(json::parse(body.value()).as_object());
    heads_.push_back(exchange.request());
    if (answers_.empty()) {
      co_await exchange.ClientGone();  // hangs
      exchange.Abort();
      co_return;
    }
    http::Response answer = std::move(answers_.front());
    answers_.pop_front();
    co_await exchange.Send(std::move(answer));
  }

  Result<RunnerResult> RunJob(RunnerJob job = {.goal = "a page about ships"}) {
    job.log = [this](std::string_view source, std::string_view text) {
      log_ += fmt::format("{}: {}\n", source, text);
    };
    Result<RunnerResult> result = tl::unexpected(Error(Code::kUnknown, "it did not run"));
    auto run = [&]() -> Task<void> {
      auto runner = MakeLlmRunner(co_await asio::this_coro::executor, config_);
      result = co_await runner->Run(std::move(job));
    };
    server_.loop().Run(run());
    EXPECT_THAT(log_, Not(HasSubstr(std::string(kKey))));
    if (!result) EXPECT_THAT(result.error().message(), Not(HasSubstr(std::string(kKey))));
    return result;
  }
  // Of the last question.
  std::string LastWords() const {
    const json::array& messages = questions_.back().at("messages").as_array();
    return std::string(messages.back().at("content").as_string());
  }

  std::deque<http::Response> answers_;
  std::vector<json::object> questions_;
  std::vector<http::RequestHead> heads_;
  std::string log_;
  Config config_;
  http::TestServer server_;
};

TEST_F(LlmRunnerTest, AsksAndReads) {
  answers_ = {Completed(kGood)};
  auto result = RunJob();
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->changes.at(0).path, "index.html");
  EXPECT_EQ(result->changes.at(0).new_content, "<h1>Ships</h1>");
  EXPECT_EQ(result->model, "model-1-2026");
  EXPECT_EQ(result->tokens_in, 100);
  EXPECT_EQ(result->tokens_out, 20);
  EXPECT_THAT(log_, HasSubstr("stdout: A page."));
  ASSERT_EQ(questions_.size(), 1u);
  EXPECT_EQ(questions_[0].at("model"), "model-1");
  EXPECT_EQ(questions_[0].at("max_tokens"), 16'000);
  EXPECT_EQ(heads_[0].method, "POST");
  EXPECT_EQ(heads_[0].target, "/v1/chat/completions");
  EXPECT_EQ(heads_[0].headers.Value("Authorization"), fmt::format("Bearer {}", kKey));
  EXPECT_EQ(heads_[0].headers.Value("Host"), server_.address());
  EXPECT_THAT(json::serialize(questions_[0]), HasSubstr("a page about ships"));
  EXPECT_THAT(json::serialize(questions_[0]), Not(HasSubstr(std::string(kKey))));
}

TEST_F(LlmRunnerTest, TakesACodeFenceOff) {
  answers_ = {Completed(fmt::format("```json\n{}\n```", kGood))};
  EXPECT_TRUE(RunJob());
}

TEST_F(LlmRunnerTest, TellsTheModelWhatIsWrong) {
  answers_ = {Completed("Here is your page!"),
              Completed(R"({"changes":[{"path":"a.html","content":"x"}]})"), Completed(kGood)};
  auto result = RunJob();
  ASSERT_TRUE(result) << result.error().message();
  ASSERT_EQ(questions_.size(), 3u);
  EXPECT_THAT(json::serialize(questions_[1]), HasSubstr("Here is your page!"));
  EXPECT_THAT(json::serialize(questions_[1]), HasSubstr("is not JSON"));
  EXPECT_THAT(LastWords(), HasSubstr("named \"new_content\""));
  EXPECT_EQ(result->tokens_in, 300);
  EXPECT_THAT(log_, HasSubstr("attempt 3 of 3"));
}

TEST_F(LlmRunnerTest, FilesThatMakeNoVersionAreToldToo) {
  answers_ = {Completed(R"({"changes":[{"path":"src/App.jsx","new_content":"x"}]})"),
              Completed(kGood)};
  EXPECT_TRUE(RunJob());
  EXPECT_THAT(LastWords(), HasSubstr("no package.json"));
}

TEST_F(LlmRunnerTest, GivesUpAfterItsAttempts) {
  config_.llm_attempts = 2;
  answers_ = {Completed("no"), Completed("{}"), Completed(kGood)};
  EXPECT_EQ(RunJob().error().code(), Code::kDataLoss);
  EXPECT_EQ(questions_.size(), 2u);
}

TEST_F(LlmRunnerTest, AnAnswerCutOffIsAskedForAgain) {
  answers_ = {Completed(kGood.substr(0, 40), "length"), Completed(kGood)};
  EXPECT_TRUE(RunJob());
  EXPECT_THAT(LastWords(), HasSubstr("cut off after 16000 tokens"));
}

TEST_F(LlmRunnerTest, ARefusalIsFinal) {
  answers_ = {Completed("", "content_filter"), Completed(kGood)};
  EXPECT_EQ(RunJob().error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(questions_.size(), 1u);
}

TEST_F(LlmRunnerTest, AWrongKeyIsFinalAndNotRepeated) {
  answers_ = {http::Response::Json(
      401, {{"error", {{"message", fmt::format("Incorrect API key provided: {}", kKey)}}}})};
  auto result = RunJob();
  EXPECT_EQ(result.error().code(), Code::kUnauthenticated);
  EXPECT_THAT(result.error().message(), HasSubstr("llm_api_key"));
  EXPECT_EQ(questions_.size(), 1u);
}

TEST_F(LlmRunnerTest, TheKeyIsCutOutOfOtherWords) {
  for (std::string key : {std::string(kKey), std::string("abc")}) {
    config_.llm_api_key = key;
    answers_ = {http::Response::Json(
        400, {{"error", {{"message", fmt::format("bad request with {} in it", key)}}}})};
    auto result = RunJob();
    EXPECT_EQ(result.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(result.error().message(), HasSubstr("bad request with *** in it"));
  }
}

TEST_F(LlmRunnerTest, WaitsAsLongAsItIsTold) {
  http::Response busy = http::Response::Json(429, {{"error", {{"message", "slow down"}}}});
  busy.headers.Set("Retry-After", "1");
  answers_ = {busy, Completed(kGood)};
  auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(RunJob());
  EXPECT_GE(std::chrono::steady_clock::now() - start, 1s);
  EXPECT_EQ(questions_.size(), 2u);
}

TEST_F(LlmRunnerTest, DoesNotWaitLongerThanItHas) {
  http::Response busy = http::Response::Json(429, {{"error", {{"message", "slow down"}}}});
  busy.headers.Set("Retry-After", "600");
  answers_ = {busy, Completed(kGood)};
  auto result = RunJob();
  EXPECT_EQ(result.error().code(), Code::kUnavailable);
  EXPECT_THAT(result.error().message(), HasSubstr("in 600 s"));
  EXPECT_EQ(questions_.size(), 1u);
}

TEST_F(LlmRunnerTest, RepeatsWhatTheServerBroke) {
  answers_ = {http::Response::Text(500, "oops"), http::Response::Text(502, "<html>"),
              Completed(kGood)};
  EXPECT_TRUE(RunJob());
  EXPECT_EQ(questions_.size(), 3u);
}

TEST_F(LlmRunnerTest, WhatIsNoCompletionIsAskedForAgain) {
  answers_ = {http::Response::Html(200, "<html>sign in</html>"), Completed(kGood)};
  EXPECT_TRUE(RunJob());
  answers_ = {http::Response::Html(200, "<html>"), http::Response::Text(200, "{}"),
              http::Response::Text(200, "")};
  EXPECT_EQ(RunJob().error().code(), Code::kDataLoss);
}

TEST_F(LlmRunnerTest, AHangEndsAtTheDeadline) {
  config_.llm_timeout_ms = 300;
  EXPECT_EQ(RunJob().error().code(), Code::kDeadlineExceeded);
}

TEST_F(LlmRunnerTest, SpeaksAsTheServerAsks) {
  answers_ = {
      http::Response::Json(400, {{"error",
                                  {{"message",
                                    "Unsupported parameter: 'max_tokens'. Use "
                                    "'max_completion_tokens' instead."}}}}),
      http::Response::Json(400, {{"error", {{"message", "response_format is not supported"}}}}),
      Completed(kGood)};
  EXPECT_TRUE(RunJob());
  ASSERT_EQ(questions_.size(), 3u);
  EXPECT_TRUE(questions_[0].contains("response_format"));
  EXPECT_EQ(questions_[2].at("max_completion_tokens"), 16'000);
  EXPECT_FALSE(questions_[2].contains("max_tokens"));
  EXPECT_FALSE(questions_[2].contains("response_format"));
}

TEST_F(LlmRunnerTest, NeedsItsSettings) {
  config_.llm_model = "";
  EXPECT_EQ(RunJob().error().code(), Code::kFailedPrecondition);
  config_.llm_model = "model-1";
  for (std::string url : {std::string(), std::string("model.example"),
                          fmt::format("https://user:{}@host/v1", kKey)}) {
    config_.llm_base_url = url;
    EXPECT_EQ(RunJob().error().code(), Code::kFailedPrecondition) << url;
  }
  EXPECT_TRUE(questions_.empty());
}

TEST_F(LlmRunnerTest, AServerThatIsNotThereIsUnavailable) {
  config_.llm_base_url = "http://127.0.0.1:1/v1";
  config_.llm_timeout_ms = 1'000;
  EXPECT_EQ(RunJob().error().code(), Code::kUnavailable);
}

TEST_F(LlmRunnerTest, AFurtherBuildKnowsTheFilesBefore) {
  answers_ = {Completed(R"({"changes":[{"path":"index.html","delete":true}]})"), Completed(kGood)};
  auto result = RunJob({.goal = "more ships",
                        .failure = "The checks of the code failed.",
                        .files = {{"index.html", "<h1>Boats</h1>"}}});
  ASSERT_TRUE(result);
  EXPECT_THAT(json::serialize(questions_[0]), HasSubstr("Boats"));
  EXPECT_THAT(json::serialize(questions_[0]), HasSubstr("The checks of the code failed."));
  // To delete everything makes no version.
  EXPECT_THAT(LastWords(), HasSubstr("there are no files"));
}

}  // namespace
}  // namespace caisson::build

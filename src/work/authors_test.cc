#include "work/authors.h"

#include "work/work_fixture.h"

namespace caisson::work {
namespace {

class AuthorsTest : public WorkTest {
 protected:
  // Whom GitHub would see, of ann's pull requests; the error's text if nobody.
  std::string TokenOf(const std::string& identity) {
    config_.pull_request_identity = identity;
    forge::GitHub server(io_.get_executor(), config_);
    Authors authors(io_.get_executor(), platform(), tokens_, server);
    auto github = Wait(authors.Of("ann"));
    if (!github) {
      EXPECT_EQ(github.error().code(), Code::kUnauthenticated);
      return github.error().message();
    }
    if (github->get() == &server) return "the server's";
    return Wait((*github)->Token(/*refresh=*/false)).value();
  }

  account::GithubTokens tokens_{*store_, "a secret"};
};

TEST_F(AuthorsTest, AreWhoTheSettingSays) {
  config_.github_token = "token-of-the-bot";
  EXPECT_EQ(TokenOf("bot"), "the server's");
  config_.github_app_id = "1";
  // The server works as the App from now on, and pull requests stay the bot's.
  EXPECT_EQ(TokenOf("bot"), "token-of-the-bot");
  EXPECT_EQ(TokenOf("app"), "the server's");
  config_.github_token.clear();
  EXPECT_EQ(TokenOf("bot"), "the server's");
  EXPECT_NE(TokenOf("user").find("caisson github-token set"), std::string::npos);
  ASSERT_TRUE(Wait(tokens_.Set("bob", "token-of-bob", "bob")));
  EXPECT_NE(TokenOf("user").find("caisson github-token set"), std::string::npos);
  ASSERT_TRUE(Wait(tokens_.Set("ann", "token-of-ann", "ann")));
  EXPECT_EQ(TokenOf("user"), "token-of-ann");
  EXPECT_EQ(log_->redactor().Redact("it is token-of-ann"), "it is ***");
}

TEST_F(AuthorsTest, WhatCanBeNoTokenIsRefusedBeforeGitHubIsAsked) {
  forge::GitHub server(io_.get_executor(), config_);
  Authors authors(io_.get_executor(), platform(), tokens_, server);
  for (const char* text : {"", "two tokens", "one,other", "a\r\nHost: b", "t\xc3\xb6ken"})
    EXPECT_EQ(Wait(authors.SetToken("ann", text)).error().code(), Code::kInvalidArgument) << text;
  EXPECT_FALSE(Wait(authors.FindToken("ann")).value());
}

TEST_F(AuthorsTest, WorkDoesNotBeginWithoutTheTokenThatItsEndNeeds) {
  config_.pull_request_identity = "user";
  auto agent = Agent("Ada");
  std::string task = AddTask(ATask());
  auto refused = Start(task, agent.id);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(refused.error().message().find("/api/v1/auth/github-token"), std::string::npos);
  EXPECT_EQ(TaskOf(task).status, "pending");
  // What ends in no pull request needs none.
  auto scratch = Start(AddTask({.title = "t"}), agent.id);
  ASSERT_TRUE(scratch) << scratch.error().message();
  Await(scratch->execution_id, {"succeeded"});
  auto far = Start(AddTask(ATask()), Agent("Far", "external").id);
  ASSERT_TRUE(far) << far.error().message();
  config_.pull_request = "never";
  auto never = Start(AddTask(ATask()), agent.id);
  ASSERT_TRUE(never) << never.error().message();
  Await(never->execution_id, {"succeeded"});
  config_.pull_request = "task_done";
  ASSERT_TRUE(Wait(tokens_.Set("ann", "token-of-ann", "ann-gh")));
  auto started = Start(task, agent.id);
  ASSERT_TRUE(started) << started.error().message();
  Await(started->execution_id, {"succeeded"});
  json::object told = DataOf("pr_created").back();
  EXPECT_EQ(told.at("identity"), "user");
  EXPECT_EQ(told.at("author"), "grace");
}

// Taken away while the agent worked: the work is pushed, and goes on when there is a token again.
TEST_F(AuthorsTest, ARunWithoutItsTokenWaitsForTheUser) {
  config_.pull_request_identity = "user";
  ASSERT_TRUE(Wait(tokens_.Set("ann", "token-of-ann", "ann-gh")));
  auto agent = Agent("Ada");
  workshop_.FailNext("pull_request", Wait(tokens_.Open("bob")).error());
  auto started = Start(AddTask(ATask()), agent.id);
  ASSERT_TRUE(started) << started.error().message();
  Await(started->execution_id, {"waiting"});
  auto run = Write([&](Tx& tx) { return tx.Need<store::RunRow>(started->run_id, "run"); });
  EXPECT_NE(run->error.find("caisson github-token set"), std::string::npos) << run->error;
  EXPECT_EQ(workshop_.Count("agent"), 1);
  ASSERT_TRUE(Write([&](Tx& tx) { return engine_->Redrive(tx, started->run_id, ""); }));
  engine_->Wake();
  Await(started->execution_id, {"succeeded"});
  EXPECT_EQ(workshop_.Count("agent"), 1);
}

}  // namespace
}  // namespace caisson::work

#include "session/prompt.h"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "session/answer.h"
#include "session/options.h"

namespace caisson::session {
namespace {

TEST(Prompt, HoldsWhatWasSaidBefore) {
  std::vector<store::MessageRow> earlier = {{.role = "user", .content = "plant a tree"},
                                            {.role = "assistant", .content = "it is planted"}};
  std::string text = PromptFor({.text = "water it", .branch = "session-1", .earlier = earlier});
  EXPECT_LT(text.find("User: plant a tree"), text.find("You: it is planted"));
  EXPECT_LT(text.find("You: it is planted"), text.find("water it"));
  EXPECT_NE(text.find("branch session-1"), std::string::npos);
  EXPECT_EQ(PromptFor({.text = "x", .mode = "plan", .branch = "b"}).find("branch b"),
            std::string::npos);
}

TEST(Prompt, LeavesOutWhatIsTooLongAgo) {
  std::vector<store::MessageRow> earlier;
  for (int i = 0; i < 50; ++i)
    earlier.push_back(
        {.role = "user", .content = fmt::format("{:03} ", i) + std::string(2'000, 'x')});
  std::string text = PromptFor({.text = "now", .earlier = earlier});
  EXPECT_LT(text.size(), 30'000u);
  EXPECT_NE(text.find("User: 049"), std::string::npos);
  EXPECT_EQ(text.find("User: 000"), std::string::npos);
}

TEST(Answer, IsWhatTheAgentSaid) {
  using Kind = work::AgentEvent::Kind;
  Answer answer;
  EXPECT_EQ(answer.Text({.summary = "done"}, "plain"), "done");
  EXPECT_EQ(answer.Text({}, " plain\n"), "plain");
  answer.Add({.kind = Kind::kMessage, .text = "I look"});
  answer.Add({.kind = Kind::kTool, .name = "bash", .input = {{"command", "ls"}}});
  answer.Add({.kind = Kind::kFile, .name = "a.txt"});
  answer.Add({.kind = Kind::kMessage, .text = "I see"});
  EXPECT_EQ(answer.Text({.summary = "I see"}, ""), "I look\n\nI see");
  EXPECT_EQ(boost::json::serialize(answer.parts()),
            R"([{"type":"text","text":"I look"},)"
            R"({"type":"tool","name":"bash","input":{"command":"ls"}},)"
            R"({"type":"file","path":"a.txt","change":"modified"},)"
            R"({"type":"text","text":"I see"}])");
}

TEST(Answer, IsBounded) {
  Answer answer;
  for (size_t i = 0; i < Answer::kMaxParts * 2; ++i) answer.Add({.text = "a word"});
  EXPECT_EQ(answer.parts().size(), Answer::kMaxParts);
  EXPECT_EQ(answer.parts().back().at("type").as_string(), "cut");
}

TEST(Options, SayMoreThanTheSettings) {
  Config config;
  config.github_token = "t";
  store::SessionRow row{.id = "1-2", .title = "Plant a Tree", .repo_url = "acme/garden"};
  EXPECT_TRUE(Commits(row, config));
  EXPECT_TRUE(OpensPullRequest(row, config));
  EXPECT_EQ(BranchFor(row, config), "session-plant-a-tree-1-2");
  row.options = R"({"commit":false,"pull_request":"never","branch_name":"mine","env":{"A":"b"}})";
  EXPECT_FALSE(Commits(row, config));
  EXPECT_FALSE(OpensPullRequest(row, config));
  EXPECT_EQ(BranchFor(row, config), "mine");
  EXPECT_EQ(EnvOf(row).at("A"), "b");
  row.repo_url = "https://elsewhere.example/acme/garden";
  EXPECT_FALSE(CanPush(row, config));
}

}  // namespace
}  // namespace caisson::session

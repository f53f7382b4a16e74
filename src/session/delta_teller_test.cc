#include "session/delta_teller.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace caisson::session {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

class DeltaTellerTest : public ::testing::Test {
 protected:
  // One that begins when the log holds `told`, said in the sandbox "s1".
  DeltaTeller Begin(std::map<int64_t, std::string> told = {}, const std::string& sandbox = "s1") {
    said_.clear();
    return DeltaTeller(redactor_, {.parts = std::move(told), .sandbox_id = "s1"}, sandbox,
                       [this](json::object data) { said_.push_back(json::serialize(data)); });
  }
  // Long enough after the one before.
  DeltaTeller::Clock::time_point Later() { return now_ += DeltaTeller::kInterval; }

  events::Redactor redactor_;
  std::vector<std::string> said_;
  DeltaTeller::Clock::time_point now_{std::chrono::hours(1)};
};

TEST_F(DeltaTellerTest, TellsWholeWordsAndTheRestAtTheEnd) {
  DeltaTeller teller = Begin();
  teller.Add("It is do", true, Later());
  teller.Add("ne. Re", false, Later());
  teller.Add("ally", false, Later());
  teller.End("It is done. Really.");
  teller.End("Bye.");
  EXPECT_EQ(said_, (std::vector<std::string>{
                       R"({"part":0,"text":"It is "})", R"({"part":0,"text":"done. "})",
                       R"({"part":0,"text":"Really.\n\n"})", R"({"part":1,"text":"Bye.\n\n"})"}));
}

TEST_F(DeltaTellerTest, BundlesWhatComesTooFast) {
  DeltaTeller teller = Begin();
  auto begin = Later();
  for (int i = 0; i < 1'000; ++i) teller.Add("word ", i == 0, begin + milliseconds(i));
  EXPECT_EQ(said_.size(), 10u);
  teller.Add("", false, begin + milliseconds(1'000));
  EXPECT_EQ(said_.size(), 11u);
}

TEST_F(DeltaTellerTest, DoesNotTellAgainWhatTheLogHolds) {
  DeltaTeller teller = Begin({{0, "One.\n\n"}, {1, "It is "}});
  teller.Add("One", true, Later());
  teller.End("One.");
  teller.Add("It ", true, Later());
  teller.Add("is done", false, Later());
  EXPECT_TRUE(said_.empty());
  teller.End("It is done.");
  EXPECT_EQ(said_, std::vector<std::string>{R"({"part":1,"text":"done.\n\n"})"});
}

TEST_F(DeltaTellerTest, TakesBackWhatIsSaidInOtherWords) {
  DeltaTeller teller = Begin({{0, "One.\n\n"}, {1, "It is "}});
  teller.End("One.");
  teller.Add("It was so ", true, Later());
  // A model that broke off and was asked again.
  teller.Add("Well, ", true, Later());
  teller.End("Well, no.");
  EXPECT_EQ(said_, (std::vector<std::string>{R"({"part":1,"restart":true,"text":"It was so "})",
                                             R"({"part":1,"restart":true,"text":"Well, "})",
                                             R"({"part":1,"text":"no.\n\n"})"}));
}

TEST_F(DeltaTellerTest, TakesBackWhatTurnsOutToBeTooMuch) {
  DeltaTeller teller = Begin({{0, "It is done, I believe "}});
  teller.End("It is done");
  EXPECT_EQ(said_,
            std::vector<std::string>{R"({"part":0,"restart":true,"text":"It is done\n\n"})"});
}

TEST_F(DeltaTellerTest, WhatWasSaidInALostSandboxIsVoid) {
  DeltaTeller teller = Begin({{0, "One.\n\n"}, {1, "It is "}}, "s2");
  teller.End("One.");
  teller.End("Two.");
  EXPECT_EQ(said_, (std::vector<std::string>{R"({"part":0,"restart":true,"text":"One.\n\n"})",
                                             R"({"part":1,"text":"Two.\n\n"})"}));
}

TEST_F(DeltaTellerTest, NoPieceOfASecretIsTold) {
  redactor_.Add("correct-horse-battery");
  DeltaTeller teller = Begin();
  for (const char* piece : {"The key is ", "correct-", "horse-", "battery", ", he said"})
    teller.Add(piece, piece[0] == 'T', Later());
  teller.End("The key is correct-horse-battery, he said");
  EXPECT_EQ(said_, (std::vector<std::string>{R"({"part":0,"text":"The key is "})",
                                             R"({"part":0,"text":"***, he "})",
                                             R"({"part":0,"text":"said\n\n"})"}));
}

TEST_F(DeltaTellerTest, ALongMessageIsCut) {
  DeltaTeller teller = Begin();
  std::string piece = std::string(999, 'x') + " ", message;
  while (message.size() < 2 * DeltaTeller::kMaxText) {
    teller.Add(piece, message.empty(), Later());
    message += piece;
  }
  teller.End(message);
  size_t told = 0;
  for (const std::string& one : said_) told += one.size();
  EXPECT_EQ(said_.size(), DeltaTeller::kMaxText / piece.size() + 1);
  EXPECT_LT(told, DeltaTeller::kMaxText + 30 * said_.size());
}

}  // namespace
}  // namespace caisson::session

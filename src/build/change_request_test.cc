#include "build/change_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson::build {
namespace {

using ::testing::ElementsAre;

TEST(TellingWords, LeaveOutWhatStandsEverywhere) {
  EXPECT_THAT(TellingWords("Please make the Colours of the page brighter, as in v2!"),
              ElementsAre("brighter", "colours"));
  EXPECT_TRUE(TellingWords("do it").empty());
  EXPECT_THAT(TellingWords("größer"), ElementsAre("größer"));
}

TEST(ChangeRequest, IsJudgedByTheLinesThatFit) {
  std::vector<FileDifference> changes = {
      {.path = "styles/colour.css", .change = "modified", .additions = 6, .deletions = 2},
      {.path = "index.html", .additions = 1, .deletions = 1, .patch = "+<p>brighter colours\n"},
      {.path = "server.js", .additions = 10, .patch = "+listen(80)\n"}};
  ChangeRequest request{.change_description = "brighter colours"};
  Judge(request, changes);
  EXPECT_DOUBLE_EQ(request.alignment_score.value(), 0.5);
  EXPECT_FALSE(request.scope_creep_detected);
  EXPECT_THAT(request.beside_it, ElementsAre("server.js"));
  changes[2].additions = 11;
  ChangeRequest worse{.change_description = "brighter colours"};
  Judge(worse, changes);
  EXPECT_TRUE(worse.scope_creep_detected);
}

TEST(ChangeRequest, WithoutFilesOrWordsThereIsNoScore) {
  ChangeRequest none{.change_description = "brighter colours"};
  Judge(none, {});
  EXPECT_FALSE(none.alignment_score);
  ChangeRequest mute{.change_description = "do it"};
  Judge(mute, {{.path = "a", .additions = 1}});
  EXPECT_FALSE(mute.alignment_score);
  EXPECT_FALSE(mute.scope_creep_detected);
}

}  // namespace
}  // namespace caisson::build

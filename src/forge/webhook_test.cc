#include "forge/webhook.h"

#include <gtest/gtest.h>

namespace caisson::forge {
namespace {

constexpr const char* kSecret = "It's a Secret to Everybody";
constexpr const char* kBody = "Hello, World!";
// The example of GitHub's documentation.
constexpr const char* kSignature =
    "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

TEST(Webhook, TakesGitHubsOwnExampleOfASignature) {
  EXPECT_TRUE(CheckSignature(kSecret, kBody, kSignature));
}

TEST(Webhook, TakesNoOtherSignature) {
  std::string upper = kSignature, cut = kSignature;
  upper[8] = '8';
  cut.pop_back();
  EXPECT_FALSE(CheckSignature(kSecret, kBody, upper));
  EXPECT_FALSE(CheckSignature(kSecret, kBody, cut));
  EXPECT_FALSE(CheckSignature(kSecret, kBody, ""));
  EXPECT_FALSE(CheckSignature(kSecret, kBody, std::string_view(kSignature).substr(7)));
  EXPECT_FALSE(CheckSignature(kSecret, "Hello, World?", kSignature));
  EXPECT_FALSE(CheckSignature("another secret", kBody, kSignature));
}

TEST(Webhook, WithoutASecretNothingIsSigned) {
  // The HMAC of "" with an empty key.
  constexpr const char* kEmpty =
      "sha256=b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad";
  EXPECT_FALSE(CheckSignature("", "", kEmpty));
}

TEST(Webhook, ReadsAMerge) {
  auto event = ParseWebhook("pull_request", R"({"action":"closed","number":7,"pull_request":{
      "number":7,"html_url":"https://h/o/n/pull/7","title":"T","merged":true,"draft":false,
      "merge_commit_sha":"abc","head":{"ref":"task-1"},"base":{"ref":"main"}},
      "repository":{"full_name":"o/n"},"sender":{"login":"ada"}})");
  ASSERT_TRUE(event) << event.error().message();
  EXPECT_EQ(event->action, "closed");
  EXPECT_EQ(event->repo, "o/n");
  EXPECT_EQ(event->number, 7);
  EXPECT_TRUE(event->merged);
  EXPECT_EQ(event->merge_sha, "abc");
  EXPECT_EQ(event->head, "task-1");
  EXPECT_EQ(event->actor, "ada");
}

TEST(Webhook, ReadsAReview) {
  auto event = ParseWebhook("pull_request_review", R"({"action":"submitted",
      "review":{"state":"CHANGES_REQUESTED","body":"Please test it."},
      "pull_request":{"number":3},"repository":{"full_name":"o/n"},"sender":{"login":"ada"}})");
  ASSERT_TRUE(event) << event.error().message();
  EXPECT_EQ(event->review_state, "changes_requested");
  EXPECT_EQ(event->review_body, "Please test it.");
}

TEST(Webhook, OtherEventsAreReadAsFarAsTheyGo) {
  auto ping = ParseWebhook("ping", R"({"zen":"Speak like a human.","hook_id":1})");
  ASSERT_TRUE(ping);
  EXPECT_EQ(ping->event, "ping");
  EXPECT_EQ(ping->number, 0);
}

TEST(Webhook, RefusesWhatGitHubDoesNotSend) {
  for (const char* body :
       {"", "no json", "[]", "{}", R"({"action":"closed"})",
        R"({"action":"closed","pull_request":{"number":1}})",
        R"({"action":"closed","pull_request":{"number":"1"},"repository":{"full_name":"o/n"}})",
        R"({"action":1,"pull_request":{"number":1},"repository":{"full_name":"o/n"}})"})
    EXPECT_EQ(ParseWebhook("pull_request", body).error().code(), Code::kInvalidArgument) << body;
  EXPECT_FALSE(ParseWebhook("pull_request_review",
                            R"({"action":"submitted","pull_request":{"number":1},
                                "repository":{"full_name":"o/n"}})"));
  EXPECT_FALSE(ParseWebhook("ping", "no json"));
}

}  // namespace
}  // namespace caisson::forge

#include "forge/webhook.h"

#include "base/encoding.h"
#include "base/text.h"
#include "forge/fields.h"

namespace caisson::forge {

bool CheckSignature(std::string_view secret, std::string_view body, std::string_view header) {
  // SECURITY: an empty secret signs nothing; whoever has none configured must not get here.
  if (secret.empty()) return false;
  std::string expected = "sha256=" + HexEncode(HmacSha256(secret, body));
  return ConstantTimeEqual(expected, header);
}

Result<WebhookEvent> ParseWebhook(std::string_view event, std::string_view body) {
  boost::system::error_code ec;
  json::value value = json::parse({body.data(), body.size()}, ec);
  if (ec || !value.is_object())
    return Fail(Code::kInvalidArgument, "The body of the webhook is no JSON object.");
  WebhookEvent one;
  one.event = event;
  one.action = Text(value, "action");
  one.repo = Text(value, "repository", "full_name");
  one.actor = Text(value, "sender", "login");
  if (event != "pull_request" && event != "pull_request_review") return one;

  const json::value* pull = Field(value, "pull_request");
  one.number = pull ? Number(*pull, "number") : 0;
  if (one.action.empty() || one.repo.empty() || one.number <= 0)
    return Fail(Code::kInvalidArgument,
                "The webhook {} names no action, no repository or no pull request.", event);
  one.url = Text(*pull, "html_url");
  one.title = Text(*pull, "title");
  one.head = Text(*pull, "head", "ref");
  one.base = Text(*pull, "base", "ref");
  one.draft = Flag(*pull, "draft");
  one.merged = Flag(*pull, "merged") || !Text(*pull, "merged_at").empty();
  one.merge_sha = Text(*pull, "merge_commit_sha");
  if (const json::value* review = Field(value, "review"); event == "pull_request_review") {
    if (!review || !review->is_object())
      return Fail(Code::kInvalidArgument, "The webhook {} holds no review.", event);
    one.review_state = ToLower(Text(*review, "state"));
    one.review_body = Text(*review, "body");
    one.review_id = Number(*review, "id");
  }
  return one;
}

}  // namespace caisson::forge

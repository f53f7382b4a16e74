// What GitHub sends: the check of its signature, and the few facts of an event that matter.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::forge {

// `header` is X-Hub-Signature-256: "sha256=<hex>". Constant time.
bool CheckSignature(std::string_view secret, std::string_view body, std::string_view header);

struct WebhookEvent {
  std::string event;   // X-GitHub-Event
  std::string action;  // "closed"
  std::string repo;    // "owner/name"
  int64_t number = 0;  // of the pull request, 0 if it is about none
  std::string url, head, base, title;
  bool merged = false, draft = false;
  std::string merge_sha;
  std::string actor;         // who did it
  std::string review_state;  // "approved", "changes_requested", "commented"
  std::string review_body;
  int64_t review_id = 0;
};
// kInvalidArgument: no JSON, or not what GitHub sends for this event.
Result<WebhookEvent> ParseWebhook(std::string_view event, std::string_view body);

}  // namespace caisson::forge

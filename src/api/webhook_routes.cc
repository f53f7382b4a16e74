// What GitHub sends to us.
#include <boost/json.hpp>

#include "api/github_routes.h"
#include "api/work_codec.h"
#include "base/log.h"
#include "base/text.h"
#include "forge/webhook.h"

namespace caisson::api {
namespace {

constexpr size_t kMaxDeliveryId = 100;
// GitHub waits ten seconds for the answer to a webhook.
constexpr std::chrono::milliseconds kRemarksTimeout{5'000};

// Those that change something; all others are received and ignored.
json::array SupportedEvents() { return {"pull_request", "pull_request_review", "ping"}; }

// What a reviewer wrote at lines is not in the webhook. If GitHub does not tell it, the agent at
// least gets to know that there may be more.
Task<void> FetchRemarks(GithubServices services, forge::WebhookEvent& event) {
  if (event.review_state != "changes_requested" || event.action != "submitted") co_return;
  auto name = forge::ParseRepoName(event.repo);
  if (!name || !services.github.configured()) co_return;
  auto comments = co_await WithDeadline(kRemarksTimeout, "reading the review",
                                        services.github.ListReviewComments(*name, event.number));
  if (comments) co_return work::AddRemarks(event, *comments);
  LogWarn("comments of a review were not read",
          {{"repository", event.repo}, {"why", comments.error().message()}});
  event.review_body += "\n\n(There may be comments at lines, which could not be read.)";
}

// Tells the sender why, and who administers this server, too.
Task<Error> NotTaken(GithubServices services, const Call& call, std::string outcome, Error why) {
  const http::Headers& headers = call.exchange.request().headers;
  forge::WebhookEvent event;
  event.event = headers.Value("X-GitHub-Event");
  work::Delivery delivery{.outcome = std::move(outcome), .note = why.message()};
  co_await services.pull_requests.Remember(std::string(headers.Value("X-GitHub-Delivery")),
                                           std::move(event), std::move(delivery));
  co_return why;
}

// What can be told without doing anything.
Result<forge::WebhookEvent> Read(const GithubServices& services, const Call& call) {
  const http::Headers& headers = call.exchange.request().headers;
  if (!forge::CheckSignature(services.config.github_webhook_secret, call.raw_body,
                             headers.Value("X-Hub-Signature-256")))
    return Fail(Code::kInvalidArgument, "The signature (X-Hub-Signature-256) is missing or wrong.");
  std::string_view id = headers.Value("X-GitHub-Delivery"), event = headers.Value("X-GitHub-Event");
  if (id.empty() || id.size() > kMaxDeliveryId || event.empty() || event.size() > kMaxDeliveryId)
    return Fail(Code::kInvalidArgument,
                "X-GitHub-Delivery and X-GitHub-Event must say what this is.");
  return forge::ParseWebhook(ToUtf8(event), call.raw_body);
}

Answer Receive(GithubServices services, Call& call) {
  if (services.config.github_webhook_secret.empty())
    co_return Fail(Code::kUnavailable,
                   "Webhooks are not received: github_webhook_secret (GITHUB_WEBHOOK_SECRET) is "
                   "not set.");
  auto parsed = Read(services, call);
  if (!parsed)
    co_return tl::unexpected(co_await NotTaken(services, call, "refused", parsed.error()));
  const http::Headers& headers = call.exchange.request().headers;
  std::string id(headers.Value("X-GitHub-Delivery")), event(headers.Value("X-GitHub-Event"));
  std::string repo = parsed->repo, action = parsed->action;
  co_await FetchRemarks(services, *parsed);
  auto delivery = co_await services.pull_requests.Receive(ToUtf8(id), std::move(*parsed));
  if (!delivery)
    co_return tl::unexpected(co_await NotTaken(services, call, "failed", delivery.error()));
  call.target = id;
  if (auto name = forge::ParseRepoName(repo))
    co_await work::DeleteMergedBranch(services.config, services.github, *name, *delivery);
  co_return http::Response::Json(200, json::object{{"status", delivery->outcome},
                                                   {"event", event},
                                                   {"action", action},
                                                   {"message", delivery->note}});
}

Answer ListDeliveries(GithubServices services, Call& call) {
  CO_TRY_ASSIGN(auto listed, co_await services.pull_requests.Deliveries(PageOf(call)));
  json::array deliveries;
  for (const store::WebhookRow& row : listed.items)
    deliveries.push_back(
        json::object{{"id", row.id},
                     {"event", row.event},
                     {"action", row.action},
                     {"repo", row.repo},
                     {"received_at", FormatTime(row.at)},
                     {"outcome", row.outcome == "processed" ? "handled" : row.outcome},
                     {"detail", row.note}});
  co_return http::Response::Json(
      200, json::object{{"deliveries", std::move(deliveries)}, {"total", listed.total}});
}

Answer Test(GithubServices services, Call&) {
  bool configured = !services.config.github_webhook_secret.empty();
  co_return http::Response::Json(200, json::object{{"endpoint", "/api/v1/webhooks/github"},
                                                   {"secret_configured", configured},
                                                   {"supported_events", SupportedEvents()}});
}

}  // namespace

void AddWebhookRoutes(Frame& frame, GithubServices services) {
  frame.AddSchema("WebhookOutcome", R"({"type":"object","properties":{
    "status":{"type":"string","enum":["processed","ignored"]},"event":{"type":"string"},
    "action":{"type":"string"},"message":{"type":"string"}}})");
  frame.AddSchema("WebhookTest", R"({"type":"object","properties":{
    "endpoint":{"type":"string"},"secret_configured":{"type":"boolean"},
    "supported_events":{"type":"array","items":{"type":"string"}}}})");
  frame.Add({.method = "POST",
             .pattern = "/api/v1/webhooks/github",
             .tag = "webhooks",
             .id = "receiveGithubWebhook",
             .summary = "For GitHub: something happened to a pull request",
             .access = Access::kNobody,
             .wants_raw_body = true,
             .responses = {{200, "WebhookOutcome"}, {503, "Error"}},
             .handler = [services](Call& call) { return Receive(services, call); }});
  frame.Add({.method = "GET",
             .pattern = "/api/v1/webhooks/github/test",
             .tag = "webhooks",
             .id = "testGithubWebhook",
             .summary = "Whether webhooks are received, and which",
             .access = Access::kNobody,
             .responses = {{200, "WebhookTest"}},
             .handler = [services](Call& call) { return Test(services, call); }});
  frame.AddSchema("WebhookDelivery", R"({"type":"object","properties":{
    "id":{"type":"string"},"event":{"type":"string"},"action":{"type":"string"},
    "repo":{"type":"string"},"received_at":{"type":"string","format":"date-time"},
    "outcome":{"type":"string","enum":["handled","ignored","refused","failed"]},
    "detail":{"type":"string","description":"why"}}})");
  frame.AddSchema("WebhookDeliveryList", ListSchema("deliveries", "WebhookDelivery"));
  frame.Add({.method = "GET",
             .pattern = "/api/v1/webhooks/github/deliveries",
             .tag = "webhooks",
             .id = "listGithubDeliveries",
             .summary = "What GitHub has sent, newest first, and what became of it",
             .access = Access::kAdmin,
             .parameters = WithPage({}),
             .responses = {{200, "WebhookDeliveryList"}},
             .handler = [services](Call& call) { return ListDeliveries(services, call); }});
}

}  // namespace caisson::api

// For tests/forge: makes the calls that stdin names, one JSON object per line, and prints the
// outcome of each as one. The first line holds the settings.
#include <boost/json.hpp>
#include <functional>
#include <iostream>
#include <map>

#include "api/github_codec.h"
#include "base/log.h"
#include "base/testing.h"
#include "forge/fields.h"
#include "forge/github.h"
#include "forge/webhook.h"

namespace caisson::forge {
namespace {

using Value = Result<json::value>;

std::vector<std::string> Texts(const json::value& from, std::string_view name) {
  std::vector<std::string> texts;
  if (const json::array* list = List(from, name))
    for (const json::value& one : *list) texts.emplace_back(one.as_string());
  return texts;
}

std::optional<std::string> Maybe(const json::value& from, std::string_view name) {
  return Field(from, name) ? std::optional(Text(from, name)) : std::nullopt;
}

json::value Show(const GitHub::Made& one) {
  return {{"created", one.created}, {"pull_request", api::Encode(one.pull_request)}};
}
json::value Show(const WebhookEvent& one) {
  return {{"action", one.action},
          {"repo", one.repo},
          {"number", one.number},
          {"url", one.url},
          {"head", one.head},
          {"base", one.base},
          {"merged", one.merged},
          {"actor", one.actor},
          {"review_state", one.review_state},
          {"review_body", one.review_body}};
}
json::value Show(const std::string& one) { return json::value(one); }
json::value Show(bool one) { return json::value(one); }
// As the API shows it.
template <class T>
  requires requires(const T& one) { api::Encode(one); }
json::value Show(const T& one) {
  return api::Encode(one);
}
template <class T>
json::value Show(const std::optional<T>& one) {
  return one ? Show(*one) : json::value();
}
template <class T>
json::value Show(const std::vector<T>& all) {
  json::array list;
  for (const T& one : all) list.push_back(Show(one));
  return list;
}

template <class T>
Task<Value> Shown(Task<Result<T>> call) {
  auto result = co_await std::move(call);
  if (!result) co_return tl::unexpected(result.error());
  if constexpr (std::is_void_v<T>)
    co_return json::value();
  else
    co_return Show(*result);
}

NewReviewComment RemarkIn(const json::value& in) {
  return {.path = Text(in, "path"),
          .body = Text(in, "body"),
          .line = Number(in, "line"),
          .start_line = Number(in, "start_line"),
          .side = Text(in, "side")};
}
NewReview ReviewIn(const json::value& in) {
  NewReview review{.event = Text(in, "event"), .body = Text(in, "body")};
  if (const json::array* list = List(in, "comments"))
    for (const json::value& one : *list) review.comments.push_back(RemarkIn(one));
  return review;
}

Task<Result<WebhookEvent>> Read(std::string event, std::string body) {
  co_return ParseWebhook(event, body);
}

Task<Value> Ask(GitHub& github, json::value in) {
  std::string call = Text(in, "call");
  RepoName repo;
  if (std::string name = Text(in, "repo"); !name.empty()) {
    CO_TRY_ASSIGN(repo, ParseRepoName(name));
  }
  auto text = [&](std::string_view name) { return Text(in, name); };
  int64_t number = Number(in, "number");
  std::map<std::string, std::function<Task<Value>()>> calls = {
      {"create",
       [&] {
         return Shown(github.CreatePullRequest(repo, {.title = text("title"),
                                                      .body = text("body"),
                                                      .head = text("head"),
                                                      .base = text("base"),
                                                      .draft = Flag(in, "draft"),
                                                      .labels = Texts(in, "labels"),
                                                      .reviewers = Texts(in, "reviewers")}));
       }},
      {"find", [&] { return Shown(github.FindPullRequest(repo, text("head"))); }},
      {"get", [&] { return Shown(github.GetPullRequest(repo, number)); }},
      {"update",
       [&] {
         return Shown(github.UpdatePullRequest(
             repo, number,
             {Maybe(in, "title"), Maybe(in, "body"), Maybe(in, "state"), Maybe(in, "base")}));
       }},
      {"list",
       [&] {
         PullRequestFilter filter{.head = text("head"), .base = text("base")};
         if (Field(in, "state")) filter.state = text("state");
         if (Field(in, "limit")) filter.limit = static_cast<size_t>(Number(in, "limit"));
         return Shown(github.ListPullRequests(repo, filter));
       }},
      {"merge",
       [&] { return Shown(github.MergePullRequest(repo, number, text("method"), text("title"))); }},
      {"update_branch", [&] { return Shown(github.UpdateBranch(repo, number, text("head_sha"))); }},
      {"ready", [&] { return Shown(github.MarkReadyForReview(repo, number)); }},
      {"label", [&] { return Shown(github.AddLabels(repo, number, Texts(in, "labels"))); }},
      {"reviewers",
       [&] { return Shown(github.RequestReviewers(repo, number, Texts(in, "reviewers"))); }},
      {"review_comments", [&] { return Shown(github.ListReviewComments(repo, number)); }},
      {"review_comment",
       [&] { return Shown(github.CreateReviewComment(repo, number, RemarkIn(in))); }},
      {"reviews", [&] { return Shown(github.ListReviews(repo, number)); }},
      {"review", [&] { return Shown(github.CreateReview(repo, number, ReviewIn(in))); }},
      {"reply",
       [&] {
         return Shown(
             github.ReplyToReviewComment(repo, number, Number(in, "comment"), text("body")));
       }},
      {"checks", [&] { return Shown(github.ListChecks(repo, text("sha"))); }},
      {"create_issue",
       [&] {
         return Shown(github.CreateIssue(repo, text("title"), text("body"), Texts(in, "labels"),
                                         Texts(in, "assignees")));
       }},
      {"issue", [&] { return Shown(github.GetIssue(repo, number)); }},
      {"comment", [&] { return Shown(github.AddComment(repo, number, text("body"))); }},
      {"repository", [&] { return Shown(github.GetRepository(repo)); }},
      {"rights", [&] { return Shown(github.CheckRights(repo)); }},
      {"protected", [&] { return Shown(github.IsProtected(repo, text("branch"))); }},
      {"delete_branch", [&] { return Shown(github.DeleteBranch(repo, text("branch"))); }},
      {"budget", [&] { return Shown(github.GetBudget()); }},
      {"webhook", [&] { return Shown(Read(text("event"), text("body"))); }},
      {"token", [&] { return Shown(github.Token(Flag(in, "refresh"))); }},
  };
  auto found = calls.find(call);
  if (found == calls.end()) co_return Fail(Code::kUnimplemented, "there is no call {}", call);
  co_return co_await found->second();
}

int Run() {
  std::string line;
  if (!std::getline(std::cin, line)) return 2;
  json::value settings = json::parse(line);
  Config config;
  config.github_api_url = Text(settings, "api_url");
  config.github_token = Text(settings, "token");
  config.github_app_id = Text(settings, "app_id");
  config.github_installation_id = Text(settings, "installation_id");
  config.github_app_key_file = Text(settings, "app_key_file");
  if (int64_t timeout = Number(settings, "timeout_ms")) config.github_timeout_ms = timeout;
  asio::io_context io;
  GitHub github(io.get_executor(), config);
  int64_t warnings = 0;
  github.OnLowBudget([&](Budget) { ++warnings; });
  while (std::getline(std::cin, line)) {
    Value value = testing::Await(io, Ask(github, json::parse(line)));
    json::object out{{"ok", value.has_value()}, {"low_budget_warnings", warnings}};
    if (value) {
      out["value"] = *value;
    } else {
      out["code"] = CodeName(value.error().code());
      out["message"] = value.error().message();
    }
    std::cout << json::serialize(out) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace caisson::forge

int main() {
  caisson::ConfigureLog(caisson::LogLevel::kInfo, caisson::LogFormat::kJson, "forge-calls");
  return caisson::forge::Run();
}

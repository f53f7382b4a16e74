#include "api/github_codec.h"

#include <boost/json.hpp>

namespace caisson::api {
namespace {

constexpr std::string_view kPullRequest = R"({"type":"object","properties":{
  "number":{"type":"integer"},"url":{"type":"string"},
  "state":{"type":"string","enum":["open","closed"]},
  "author":{"type":"string","description":"who opened it, by the name at GitHub"},
  "title":{"type":"string"},"body":{"type":"string"},
  "draft":{"type":"boolean"},"merged":{"type":"boolean"},
  "mergeable":{"type":["boolean","null"],"description":"null: GitHub does not know yet"},
  "mergeable_state":{"type":"string","description":
    "GitHub's word: clean, behind, dirty, blocked, unstable, draft, unknown; not in lists"},
  "head":{"type":"string"},"head_sha":{"type":"string"},"base":{"type":"string"},
  "merge_sha":{"type":"string"},
  "commits":{"type":"integer"},"additions":{"type":"integer"},"deletions":{"type":"integer"},
  "changed_files":{"type":"integer"},
  "labels":{"type":"array","items":{"type":"string"}},
  "created":{"type":"boolean","description":"false: it was there before"}}})";

constexpr std::string_view kRepository = R"({"type":"object","properties":{
  "full_name":{"type":"string"},"default_branch":{"type":"string"},"clone_url":{"type":"string"},
  "private":{"type":"boolean"},
  "permissions":{"type":"object","properties":{"pull":{"type":"boolean"},
    "push":{"type":"boolean"},"admin":{"type":"boolean"}}},
  "sufficient":{"type":"boolean",
    "description":"the role lets one push branches; rights says what the token itself may"}}})";

constexpr std::string_view kNewPullRequest = R"({"type":"object",
  "required":["repo","title","head"],"properties":{
  "repo":{"type":"string","description":"OWNER/NAME","maxLength":201},
  "title":{"type":"string","minLength":1,"maxLength":256},
  "body":{"type":"string","maxLength":65536},
  "head":{"type":"string","minLength":1,"maxLength":255},
  "base":{"type":"string","maxLength":255,"description":"default: the repository's default branch"},
  "draft":{"type":"boolean"},
  "labels":{"type":"array","maxItems":100,"items":{"type":"string","minLength":1,"maxLength":50}},
  "reviewers":{"type":"array","maxItems":15,
    "items":{"type":"string","minLength":1,"maxLength":100}}}})";

constexpr std::string_view kChange = R"({"type":"object","required":["repo"],"minProperties":2,
  "properties":{
  "repo":{"type":"string","maxLength":201},
  "title":{"type":"string","minLength":1,"maxLength":256},
  "body":{"type":"string","maxLength":65536},
  "state":{"type":"string","enum":["open","closed"]},
  "base":{"type":"string","minLength":1,"maxLength":255}}})";

constexpr std::string_view kMerge = R"({"type":"object","required":["repo"],"properties":{
  "repo":{"type":"string","maxLength":201},
  "method":{"type":"string","enum":["merge","squash","rebase"]},
  "title":{"type":"string","maxLength":256,"description":"of the new commit"},
  "ignore_checks":{"type":"boolean",
    "description":"merge although a check runs or has failed"}}})";

constexpr std::string_view kBranchUpdate = R"({"type":"object","required":["repo"],"properties":{
  "repo":{"type":"string","maxLength":201},
  "head_sha":{"type":"string","maxLength":64,
    "description":"only if the branch is still there; wherever it is if not said"}}})";

constexpr std::string_view kNewIssue = R"({"type":"object","required":["repo","title"],
  "properties":{
  "repo":{"type":"string","maxLength":201},
  "title":{"type":"string","minLength":1,"maxLength":256},
  "body":{"type":"string","maxLength":65536},
  "labels":{"type":"array","maxItems":100,"items":{"type":"string","minLength":1,"maxLength":50}},
  "assignees":{"type":"array","maxItems":10,
    "items":{"type":"string","minLength":1,"maxLength":100}}}})";

constexpr std::string_view kIssue = R"({"type":"object","properties":{
  "number":{"type":"integer"},"url":{"type":"string"},"state":{"type":"string"},
  "title":{"type":"string"},"body":{"type":"string"},
  "labels":{"type":"array","items":{"type":"string"}},
  "assignees":{"type":"array","items":{"type":"string"}}}})";

constexpr std::string_view kComment = R"({"type":"object","properties":{
  "id":{"type":"integer"},"url":{"type":"string"},"body":{"type":"string"},
  "author":{"type":"string"},"path":{"type":"string","description":"of a review comment"},
  "line":{"type":"integer","description":"0: the whole file"},
  "review_id":{"type":"integer"},"in_reply_to":{"type":"integer","description":"0: nothing"},
  "created_at":{"type":"string","format":"date-time"}}})";

constexpr std::string_view kNewReviewComment = R"({"type":"object",
  "required":["repo","path","body"],"properties":{
  "repo":{"type":"string","maxLength":201},
  "path":{"type":"string","minLength":1,"maxLength":4096},
  "body":{"type":"string","minLength":1,"maxLength":65536},
  "line":{"type":"integer","minimum":1,"description":"default: the whole file"},
  "start_line":{"type":"integer","minimum":1,"description":"the first of several lines"},
  "side":{"type":"string","enum":["LEFT","RIGHT"],
    "description":"LEFT: what was there; RIGHT, the default: what is new"}}})";

constexpr std::string_view kNewReview = R"({"type":"object","required":["repo","event"],
  "properties":{
  "repo":{"type":"string","maxLength":201},
  "event":{"type":"string","enum":["approve","request_changes","comment"]},
  "body":{"type":"string","maxLength":65536,"description":"needed unless it approves"},
  "comments":{"type":"array","maxItems":100,"items":{"type":"object",
    "required":["path","line","body"],"properties":{
    "path":{"type":"string","minLength":1,"maxLength":4096},
    "body":{"type":"string","minLength":1,"maxLength":65536},
    "line":{"type":"integer","minimum":1},"start_line":{"type":"integer","minimum":1},
    "side":{"type":"string","enum":["LEFT","RIGHT"]}}}}}})";

constexpr std::string_view kReview = R"({"type":"object","properties":{
  "id":{"type":"integer"},"url":{"type":"string"},"author":{"type":"string"},
  "body":{"type":"string"},
  "state":{"type":"string",
    "description":"approved, changes_requested, commented, dismissed or pending"},
  "created_at":{"type":"string","format":"date-time"}}})";

std::string ListOf(std::string_view name) {
  return fmt::format(R"({{"type":"array","items":{{"$ref":"#/components/schemas/{}"}}}})", name);
}

}  // namespace

json::object Encode(const forge::PullRequest& one) {
  return {{"number", one.number},
          {"url", one.url},
          {"state", one.state},
          {"author", one.author},
          {"title", one.title},
          {"body", one.body},
          {"draft", one.draft},
          {"merged", one.merged},
          {"mergeable", one.mergeable ? json::value(*one.mergeable) : json::value()},
          {"mergeable_state", one.mergeable_state},
          {"head", one.head},
          {"head_sha", one.head_sha},
          {"base", one.base},
          {"merge_sha", one.merge_sha},
          {"commits", one.commits},
          {"additions", one.additions},
          {"deletions", one.deletions},
          {"changed_files", one.changed_files},
          {"labels", json::value_from(one.labels)}};
}

json::object Encode(const forge::Issue& one) {
  return {{"number", one.number},
          {"url", one.url},
          {"state", one.state},
          {"title", one.title},
          {"body", one.body},
          {"labels", json::value_from(one.labels)},
          {"assignees", json::value_from(one.assignees)}};
}

json::object Encode(const forge::Comment& one) {
  return {{"id", one.id},
          {"url", one.url},
          {"body", one.body},
          {"author", one.author},
          {"path", one.path},
          {"line", one.line},
          {"review_id", one.review_id},
          {"in_reply_to", one.in_reply_to},
          {"created_at", FormatTime(one.at)}};
}

json::object Encode(const forge::Review& one) {
  return {{"id", one.id},     {"url", one.url},     {"author", one.author},
          {"body", one.body}, {"state", one.state}, {"created_at", FormatTime(one.at)}};
}

json::object Encode(const forge::Check& one) {
  return {
      {"name", one.name}, {"status", one.status}, {"conclusion", one.conclusion}, {"url", one.url}};
}

json::object Encode(const forge::Budget& one) {
  return {{"limit", one.limit},
          {"remaining", one.remaining},
          {"low", one.low()},
          {"resets_at", one.resets_at ? json::value(FormatTime(*one.resets_at)) : json::value()}};
}

json::object Encode(const forge::RepositoryInfo& one) {
  return {
      {"full_name", one.full_name},
      {"default_branch", one.default_branch},
      {"clone_url", one.clone_url},
      {"private", one.is_private},
      {"permissions", {{"pull", one.can_pull}, {"push", one.can_push}, {"admin", one.can_admin}}},
      {"sufficient", one.can_pull && one.can_push}};
}

json::object Encode(const forge::Rights& one) {
  return {{"pull", one.pull},
          {"push", one.push},
          {"pull_requests", one.pull_requests},
          {"sufficient", one.sufficient()}};
}

void AddGithubSchemas(Frame& frame) {
  frame.AddSchema("PullRequest", kPullRequest);
  frame.AddSchema("PullRequestList", ListOf("PullRequest"));
  frame.AddSchema("NewPullRequest", kNewPullRequest);
  frame.AddSchema("PullRequestChange", kChange);
  frame.AddSchema("Merge", kMerge);
  frame.AddSchema("BranchUpdate", kBranchUpdate);
  frame.AddSchema("Merged", R"({"type":"object","properties":{"merged":{"type":"boolean"},
    "sha":{"type":"string"}}})");
  frame.AddSchema("Issue", kIssue);
  frame.AddSchema("NewIssue", kNewIssue);
  frame.AddSchema("Comment", kComment);
  frame.AddSchema("CommentList", ListOf("Comment"));
  frame.AddSchema("NewComment", R"({"type":"object","required":["repo","body"],"properties":{
    "repo":{"type":"string","maxLength":201},
    "body":{"type":"string","minLength":1,"maxLength":65536}}})");
  frame.AddSchema("NewReviewComment", kNewReviewComment);
  frame.AddSchema("NewReview", kNewReview);
  frame.AddSchema("Review", kReview);
  frame.AddSchema("ReviewList", ListOf("Review"));
  frame.AddSchema("Check", R"({"type":"object","properties":{"name":{"type":"string"},
    "status":{"type":"string"},"conclusion":{"type":"string"},"url":{"type":"string"}}})");
  frame.AddSchema("CheckList", ListOf("Check"));
  frame.AddSchema("OfRepository", R"({"type":"object","required":["repo"],"properties":{
    "repo":{"type":"string","maxLength":201}}})");
  frame.AddSchema("GithubRepository", kRepository);
  frame.AddSchema("GithubRights", R"({"type":"object","properties":{"pull":{"type":"boolean"},
    "push":{"type":"boolean"},"pull_requests":{"type":"boolean"},
    "sufficient":{"type":"boolean","description":"all of them"}}})");
  frame.AddSchema("GithubBudget", R"({"type":"object","properties":{"limit":{"type":"integer"},
    "remaining":{"type":"integer"},"low":{"type":"boolean"},
    "resets_at":{"type":["string","null"],"format":"date-time"}}})");
}

}  // namespace caisson::api

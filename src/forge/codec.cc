#include "forge/codec.h"

#include "base/text.h"
#include "forge/fields.h"

namespace caisson::forge {
namespace {

// [{"name":"a"}, "b"]: GitHub shows a label in both ways.
std::vector<std::string> Names(const json::value& from, std::string_view list,
                               std::string_view name) {
  std::vector<std::string> names;
  if (const json::array* items = List(from, list))
    for (const json::value& item : *items)
      names.push_back(item.is_string() ? std::string(item.get_string()) : Text(item, name));
  return names;
}

}  // namespace

Result<PullRequest> ReadPullRequest(const json::value& from) {
  PullRequest one;
  one.number = Number(from, "number");
  if (one.number <= 0)
    return Fail(Code::kUnavailable, "GitHub's answer is not about a pull request.");
  one.url = Text(from, "html_url");
  one.node_id = Text(from, "node_id");
  one.state = Text(from, "state");
  one.author = Text(from, "user", "login");
  one.title = Text(from, "title");
  one.body = Text(from, "body");
  one.draft = Flag(from, "draft");
  // A list does not have "merged", but says when.
  one.merged = Flag(from, "merged") || !Text(from, "merged_at").empty();
  if (const json::value* mergeable = Field(from, "mergeable"); mergeable && mergeable->is_bool())
    one.mergeable = mergeable->get_bool();
  one.mergeable_state = Text(from, "mergeable_state");
  one.head = Text(from, "head", "ref");
  one.head_sha = Text(from, "head", "sha");
  one.base = Text(from, "base", "ref");
  one.merge_sha = Text(from, "merge_commit_sha");
  one.merged_by = Text(from, "merged_by", "login");
  one.commits = Number(from, "commits");
  one.additions = Number(from, "additions");
  one.deletions = Number(from, "deletions");
  one.changed_files = Number(from, "changed_files");
  one.labels = Names(from, "labels", "name");
  return one;
}

Result<Issue> ReadIssue(const json::value& from) {
  Issue one;
  one.number = Number(from, "number");
  if (one.number <= 0) return Fail(Code::kUnavailable, "GitHub's answer is not about an issue.");
  one.url = Text(from, "html_url");
  one.state = Text(from, "state");
  one.title = Text(from, "title");
  one.body = Text(from, "body");
  one.labels = Names(from, "labels", "name");
  one.assignees = Names(from, "assignees", "login");
  return one;
}

Comment ReadComment(const json::value& from) {
  Comment one;
  one.id = Number(from, "id");
  one.url = Text(from, "html_url");
  one.body = Text(from, "body");
  one.author = Text(from, "user", "login");
  one.path = Text(from, "path");
  one.line = Number(from, "line");
  if (one.line == 0) one.line = Number(from, "original_line");
  one.review_id = Number(from, "pull_request_review_id");
  one.in_reply_to = Number(from, "in_reply_to_id");
  if (auto at = ParseTime(Text(from, "created_at"))) one.at = *at;
  return one;
}

Review ReadReview(const json::value& from) {
  Review one;
  one.id = Number(from, "id");
  one.url = Text(from, "html_url");
  one.author = Text(from, "user", "login");
  one.body = Text(from, "body");
  one.state = ToLower(Text(from, "state"));
  if (auto at = ParseTime(Text(from, "submitted_at"))) one.at = *at;
  return one;
}

RepositoryInfo ReadRepository(const json::value& from) {
  RepositoryInfo one;
  one.full_name = Text(from, "full_name");
  one.default_branch = Text(from, "default_branch");
  one.clone_url = Text(from, "clone_url");
  one.is_private = Flag(from, "private");
  if (const json::value* may = Field(from, "permissions")) {
    one.can_pull = Flag(*may, "pull");
    one.can_push = Flag(*may, "push");
    one.can_admin = Flag(*may, "admin");
  }
  return one;
}

Check ReadCheck(const json::value& from) {
  return {Text(from, "name"), Text(from, "status"), Text(from, "conclusion"),
          Text(from, "html_url")};
}

json::object WriteNewPullRequest(const NewPullRequest& request) {
  return {{"title", request.title},
          {"body", request.body},
          {"head", request.head},
          {"base", request.base},
          {"draft", request.draft}};
}

json::object WriteChange(const PullRequestChange& change) {
  json::object body;
  if (change.title) body["title"] = *change.title;
  if (change.body) body["body"] = *change.body;
  if (change.state) body["state"] = *change.state;
  if (change.base) body["base"] = *change.base;
  return body;
}

json::array WriteList(const std::vector<std::string>& texts) {
  json::array list;
  for (const std::string& text : texts) list.emplace_back(text);
  return list;
}

}  // namespace caisson::forge

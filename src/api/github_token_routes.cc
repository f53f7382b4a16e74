#include "api/github_token_routes.h"

#include <boost/json.hpp>

#include "work/json_fields.h"

namespace caisson::api {
namespace {

using work::Authors;

constexpr std::string_view kToken = R"({"type":"object",
  "required":["set","login","created_at","identity"],"properties":{
  "set":{"type":"boolean"},
  "login":{"type":["string","null"],"description":"whose token it is at GitHub"},
  "created_at":{"type":["string","null"],"format":"date-time"},
  "identity":{"type":"string","enum":["bot","user","app"],"description":
    "the setting pull_request_identity: the token is used only if it is user"}}})";
constexpr std::string_view kNewToken = R"({"type":"object","required":["token"],"properties":{
  "token":{"type":"string","minLength":8,"maxLength":500,"description":"it is never shown again"}}})";

// SECURITY: not the token, not even sealed.
http::Response Shown(const Authors& authors, const std::optional<store::GithubTokenRow>& row) {
  return http::Response::Json(
      200,
      json::object{{"set", row.has_value()},
                   {"login", row ? json::value(row->login) : json::value()},
                   {"created_at", row ? json::value(FormatTime(row->created_at)) : json::value()},
                   {"identity", authors.identity()}});
}

Answer Get(Authors& authors, Call& call) {
  CO_TRY_ASSIGN(auto row, co_await authors.FindToken(call.who.user_id));
  co_return Shown(authors, row);
}

Answer Put(Authors& authors, Call& call) {
  auto row = co_await authors.SetToken(call.who.user_id, work::TextOf(call.body, "token"));
  if (!row && row.error().code() == Code::kInvalidArgument)
    co_return ErrorResponse(
        Refusal{.status = 422, .code = "validation_failed", .message = row.error().message()},
        call.exchange.request_id());
  CO_TRY(row);
  call.target = call.who.user_id;
  co_return Shown(authors, *row);
}

Answer Delete(Authors& authors, Call& call) {
  CO_TRY(co_await authors.DeleteToken(call.who.user_id));
  call.target = call.who.user_id;
  co_return http::Response::Empty(204);
}

}  // namespace

void AddGithubTokenRoutes(Frame& frame, Authors& authors) {
  frame.AddSchema("GithubToken", kToken);
  frame.AddSchema("NewGithubToken", kNewToken);
  frame.Add({.method = "GET",
             .pattern = "/api/v1/auth/github-token",
             .tag = "auth",
             .id = "getGithubToken",
             .summary = "Whether the server has a GitHub token of yours, and whose it is there",
             .responses = {{200, "GithubToken"}},
             .handler = [&authors](Call& call) { return Get(authors, call); }});
  frame.Add({.method = "PUT",
             .pattern = "/api/v1/auth/github-token",
             .tag = "auth",
             .id = "setGithubToken",
             .summary = "Give the server a GitHub token that opens pull requests in your name",
             .request = "NewGithubToken",
             .responses = {{200, "GithubToken"}},
             .handler = [&authors](Call& call) { return Put(authors, call); }});
  frame.Add({.method = "DELETE",
             .pattern = "/api/v1/auth/github-token",
             .tag = "auth",
             .id = "deleteGithubToken",
             .summary = "Take it away again",
             .responses = {{204, ""}},
             .handler = [&authors](Call& call) { return Delete(authors, call); }});
}

}  // namespace caisson::api

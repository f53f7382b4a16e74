#include "forge/answer.h"

#include <gtest/gtest.h>

#include "forge/github.h"

namespace caisson::forge {
namespace {

http::Response Answer(unsigned status, std::string body) {
  return http::Response::Text(status, std::move(body));
}

TEST(Answer, EveryRefusalHasItsCode) {
  auto code = [](unsigned status, std::string body = "{}") {
    return ErrorOf(Answer(status, std::move(body)), "it").code();
  };
  EXPECT_EQ(code(401), Code::kUnauthenticated);
  EXPECT_EQ(code(403), Code::kPermissionDenied);
  EXPECT_EQ(code(404), Code::kNotFound);
  EXPECT_EQ(code(405), Code::kFailedPrecondition);
  EXPECT_EQ(code(409), Code::kFailedPrecondition);
  EXPECT_EQ(code(502, "<html>"), Code::kUnavailable);
  EXPECT_EQ(code(422, R"({"errors":[{"message":"A pull request already exists for o:b."}]})"),
            Code::kAlreadyExists);
  EXPECT_EQ(code(422, R"({"errors":[{"message":"No commits between main and b"}]})"),
            Code::kFailedPrecondition);
  EXPECT_EQ(code(422, R"({"errors":[{"field":"head","code":"invalid"}]})"), Code::kNotFound);
  EXPECT_EQ(code(422, R"({"errors":[{"field":"title","code":"invalid"}]})"),
            Code::kInvalidArgument);
  EXPECT_EQ(code(418), Code::kUnknown);
}

TEST(Answer, GitHubsWordsAreTold) {
  Error error = ErrorOf(
      Answer(422, R"({"message":"Validation Failed","errors":[{"field":"title","code":"missing"},
                      "plain words",{"message":"and more"}]})"),
      "a pull request for b");
  EXPECT_EQ(
      error.message(),
      "GitHub refuses a pull request for b: Validation Failed; title is missing; plain words; "
      "and more");
  http::Response refused = Answer(403, R"({"message":"Resource not accessible"})");
  refused.headers.Set("X-Accepted-GitHub-Permissions", "pull_requests=write");
  EXPECT_NE(ErrorOf(refused, "it").message().find("(needed: pull_requests=write)"),
            std::string::npos);
  std::string endless = R"({"message":")" + std::string(10'000, 'x') + "\"}";
  EXPECT_LT(ErrorOf(Answer(400, endless), "it").message().size(), 700u);
}

TEST(Answer, FindsTheNextPage) {
  EXPECT_EQ(NextPage(R"(<https://h/a?page=2>; rel="next", <https://h/a?page=9>; rel="last")"),
            "https://h/a?page=2");
  EXPECT_EQ(NextPage(R"(<https://h/a?page=1>; rel="prev", <https://h/a?page=3>; rel="next")"),
            "https://h/a?page=3");
  for (const char* link : {"", "<https://h/a>; rel=\"last\"", "garbage", "<unclosed; rel=\"next\""})
    EXPECT_EQ(NextPage(link), "") << link;
}

TEST(RepoName, IsAName) {
  EXPECT_EQ(ParseRepoName("octo-org/widget.git").value().name, "widget.git");
  for (const char* name :
       {"", "a", "a/", "/b", "a/b/c", "a/..", "../b", "a/b?c", "a/b c", "a/b%2f"})
    EXPECT_FALSE(ParseRepoName(name)) << name;
}

}  // namespace
}  // namespace caisson::forge

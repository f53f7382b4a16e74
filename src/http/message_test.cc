#include "http/message.h"

#include <gtest/gtest.h>

#include "http/file_signature.h"
#include "http/router.h"

namespace caisson::http {
namespace {

TEST(Headers, IgnoreCaseAndKeepOrder) {
  Headers headers = {{"Content-Type", "a"}, {"X-List", "one, Two"}, {"x-list", "three"}};
  EXPECT_EQ(headers.Value("content-type"), "a");
  EXPECT_EQ(headers.Value("missing"), "");
  EXPECT_FALSE(headers.Has("missing"));
  EXPECT_TRUE(headers.HasToken("X-LIST", "two"));
  EXPECT_TRUE(headers.HasToken("x-list", "three"));
  EXPECT_FALSE(headers.HasToken("x-list", "tw"));
  headers.Set("X-List", "four");
  EXPECT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers.Value("x-list"), "four");
}

TEST(Query, Decodes) {
  Query query = Query::Parse("a=1&b=x+y%2Fz&empty=&flag&a=2&broken=%zz&&");
  EXPECT_EQ(query.Get("a"), "1");
  EXPECT_EQ(query.Get("b"), "x y/z");
  EXPECT_EQ(query.Get("empty"), "");
  EXPECT_EQ(query.Get("flag"), "");
  EXPECT_EQ(query.Get("broken"), "%zz");
  EXPECT_EQ(query.Get("none"), std::nullopt);
  EXPECT_EQ(query.all().size(), 6u);
}

TEST(RequestHead, SplitsItsTarget) {
  RequestHead head;
  head.target = "/a%20b?c=d?e";
  EXPECT_EQ(head.Path(), "/a%20b");
  EXPECT_EQ(head.QueryString(), "c=d?e");
  head.target = "/plain";
  EXPECT_EQ(head.Path(), "/plain");
  EXPECT_EQ(head.QueryString(), "");
}

TEST(StatusOf, FollowsConnect) {
  EXPECT_EQ(StatusOf(Code::kCanceled), 499u);
  EXPECT_EQ(StatusOf(Code::kInvalidArgument), 400u);
  EXPECT_EQ(StatusOf(Code::kDeadlineExceeded), 504u);
  EXPECT_EQ(StatusOf(Code::kResourceExhausted), 429u);
  EXPECT_EQ(StatusOf(Code::kDataLoss), 500u);
}

Task<void> Nothing(Exchange&, PathParams) { co_return; }

TEST(Router, FindsTheMostLiteralRoute) {
  Router router;
  for (auto [method, pattern] :
       std::vector<std::pair<std::string, std::string>>{{"GET", "/sandboxes/{id}"},
                                                        {"DELETE", "/sandboxes/{id}"},
                                                        {"GET", "/sandboxes/metrics"},
                                                        {"POST", "/sandboxes/{id}/timeout"},
                                                        {"GET", "/"},
                                                        {"GET", "/{a}/{b}/timeout"},
                                                        {"GET", "/templates/aliases/{alias}"}})
    router.Add(method, pattern, Nothing);
  auto pattern = [&](std::string_view method, std::string_view path) {
    auto match = router.Find(method, path);
    EXPECT_EQ(match.handler == nullptr, match.pattern.empty());
    return match.pattern;
  };
  EXPECT_EQ(pattern("GET", "/sandboxes/metrics"), "/sandboxes/metrics");
  EXPECT_EQ(pattern("GET", "/sandboxes/iabc"), "/sandboxes/{id}");
  EXPECT_EQ(pattern("GET", "/sandboxes/iabc/"), "/sandboxes/{id}");
  EXPECT_EQ(pattern("HEAD", "/sandboxes/iabc"), "/sandboxes/{id}");
  EXPECT_EQ(pattern("DELETE", "/sandboxes/metrics"), "/sandboxes/{id}");
  EXPECT_EQ(pattern("GET", "/sandboxes/i/timeout"), "/{a}/{b}/timeout");
  EXPECT_EQ(pattern("GET", "/"), "/");
  EXPECT_EQ(pattern("GET", "/sandboxes//timeout"), "");
  EXPECT_EQ(pattern("GET", "/nowhere"), "");
  EXPECT_EQ(pattern("GET", "/sandboxes/%zz"), "");
}

TEST(Router, DecodesAfterSplitting) {
  Router router;
  router.Add("GET", "/templates/aliases/{alias}", Nothing);
  auto match = router.Find("GET", "/templates/aliases/team%2Fname%3Atag");
  ASSERT_NE(match.handler, nullptr);
  EXPECT_EQ(match.params.at("alias"), "team/name:tag");
}

TEST(Router, TellsWhichMethodsAPathHas) {
  Router router;
  router.Add("GET", "/a/{id}", Nothing);
  router.Add("DELETE", "/a/{id}", Nothing);
  auto match = router.Find("PUT", "/a/1");
  EXPECT_EQ(match.handler, nullptr);
  EXPECT_EQ(match.allowed, (std::vector<std::string>{"GET", "DELETE"}));
  EXPECT_TRUE(router.Find("PUT", "/b").allowed.empty());
  EXPECT_TRUE(router.Find("GET", "/a/1").allowed.empty());
}

TEST(FileSignature, OnlyWhatCouldBeOneIsTried) {
  FileSigner signer("a b", "read", "user", "1700000000");
  std::string good = signer.Sign("token");
  EXPECT_TRUE(IsFileSignature(good));
  EXPECT_TRUE(signer.Made(good, "token"));
  EXPECT_FALSE(signer.Made(good, "nekot"));
  EXPECT_NE(FileSigner("a b", "read", "user", {}).Sign("token"), good);
  for (const std::string& bad : {std::string(), std::string("v1_"), good + "A", good.substr(1),
                                 good + std::string(12'000, 'A'), "v2_" + good.substr(3),
                                 good.substr(0, good.size() - 1) + "="})
    EXPECT_FALSE(IsFileSignature(bad)) << bad;
}

}  // namespace
}  // namespace caisson::http

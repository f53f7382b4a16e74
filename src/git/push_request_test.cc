// The parts of the broker that need no connection.
#include "git/push_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "git/broker_route.h"
#include "git/pkt_line.h"
#include "git/upstream.h"

namespace caisson::git {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

const std::string kZero(40, '0');
const std::string kOne(40, '1');
const std::string kTwo(40, '2');

std::string Command(const std::string& ref, const std::string& to = kTwo) {
  return kOne + " " + to + " " + ref;
}
std::string First(const std::string& ref, const std::string& capabilities = "report-status") {
  return Packet(Command(ref) + "\0"s + " " + capabilities);
}

TEST(PktLine, ReadsWhatItWrites) {
  EXPECT_EQ(Packet("a\n"), "0006a\n");
  auto packet = ReadPacket("0006a\nrest");
  ASSERT_TRUE(packet && *packet);
  EXPECT_EQ((*packet)->payload, "a\n");
  EXPECT_EQ((*packet)->size, 6u);
  EXPECT_TRUE((*ReadPacket("0000"))->flush);
  EXPECT_EQ(Packet(std::string(kMaxPacket, 'x')).size(), kMaxPacket);
}

TEST(PktLine, WaitsForTheRestAndRefusesNonsense) {
  for (std::string_view part : {"", "0", "000", "0006", "0006a"}) {
    auto packet = ReadPacket(part);
    EXPECT_TRUE(packet && !*packet) << part;
  }
  for (std::string_view bad : {"0001", "0002", "0003", "0004", "x", "00g", "ffff", "fff1", "+006"})
    EXPECT_FALSE(ReadPacket(bad)) << bad;
}

TEST(PushRequest, InAnyPieces) {
  std::string bytes = Packet("shallow " + kOne) +
                      First("refs/heads/a", "report-status side-band-64k agent=git/2") +
                      Packet(Command("refs/heads/b") + "\n") + "0000PACKdata";
  for (size_t piece : {1, 2, 3, 7, 1000}) {
    PushRequest push;
    for (size_t at = 0; at < bytes.size(); at += piece)
      ASSERT_TRUE(push.Feed(std::string_view(bytes).substr(at, piece)));
    ASSERT_TRUE(push.done());
    ASSERT_EQ(push.updates().size(), 2u);
    EXPECT_EQ(push.updates()[0].ref, "refs/heads/a");
    EXPECT_EQ(push.updates()[1].ref, "refs/heads/b");
    EXPECT_TRUE(push.Has("side-band-64k") && push.Has("agent") && !push.Has("side-band"));
    EXPECT_EQ(push.bytes(), bytes) << "what goes on is what was read";
    EXPECT_TRUE(push.has_rest());
  }
}

TEST(PushRequest, WhatCouldBeReadInTwoWaysIsRefused) {
  for (const std::string& bytes :
       {Packet("push-cert\0 x"s), Packet(kOne + " " + kTwo), Packet(kOne + "  refs/heads/a"),
        Packet("x " + kTwo + " refs/heads/a"), Packet(kOne + " " + kTwo + " "),
        Packet(std::string(40, 'A') + " " + kTwo + " refs/heads/a"),
        Packet(kOne + " " + std::string(64, '2') + " refs/heads/a"), "0001"s, "0004"s, "PACK"s,
        First("refs/heads/a") + Packet(Command("refs/heads/b") + "\0atomic"s),
        First("refs/heads/a", "x\0y"s), Packet("shallow x"), Packet("ERR no")}) {
    PushRequest push;
    auto fed = push.Feed(bytes + "0000");
    EXPECT_FALSE(fed) << bytes;
  }
}

TEST(PushRequest, IsBounded) {
  PushRequest many;
  Status fed;
  for (size_t i = 0; fed && i <= PushRequest::kMaxUpdates; ++i)
    fed = many.Feed(Packet(Command("refs/heads/a")));
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().code(), Code::kOutOfRange);
  PushRequest large;
  fed = {};
  for (int i = 0; fed && i < 20; ++i)
    fed = large.Feed(Packet(Command("refs/heads/" + std::string(60'000, 'a'))));
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().code(), Code::kOutOfRange);
}

std::string Why(const std::string& ref, bool tags = false, const std::string& to = kTwo) {
  return WhyRefused({{"task-7"}, tags}, {kOne, to, ref});
}

TEST(PushRule, OnlyThePrefix) {
  for (const char* ref : {"refs/heads/task-7", "refs/heads/task-7/x", "refs/heads/task-7-x"})
    EXPECT_EQ(Why(ref), "") << ref;
  EXPECT_EQ(Why("refs/heads/task-7", false, kZero), "") << "one's own branch may go";
  for (const std::string& ref :
       {"refs/heads/main"s, "refs/heads/task-70"s, "refs/heads/task-7x"s, "refs/heads/Task-7"s,
        "refs/heads/x/task-7"s, "refs/heads/"s, "refs/heads/task-7/../main"s, "refs/heads/task-7/"s,
        "refs/heads/task-7\n"s, "refs/heads//task-7"s, "refs/tags/task-7"s, "refs/task-7"s, "HEAD"s,
        "task-7"s, "refs/heads/task-7 x"s, "refs/heads/task-7.lock"s, "refs/pull/1/head"s,
        "refs/heads/refs/heads/task-7"s})
    EXPECT_NE(Why(ref), "") << ref;
  EXPECT_NE(Why("refs/heads/main", false, kZero), "");
  EXPECT_EQ(Why("refs/tags/v1", true), "");
  EXPECT_NE(Why("refs/tags/v1", true, kZero), "");
  EXPECT_NE(WhyRefused({{""}}, {kOne, kTwo, "refs/heads/main"}), "") << "an empty prefix is none";
}

TEST(PushRule, TheReportIsWhatGitReads) {
  PushRequest push;
  ASSERT_TRUE(push.Feed(First("refs/heads/main", "report-status-v2 side-band-64k") + "0000"));
  std::string report = RefusalReport(push, {"because"}, "A note.");
  EXPECT_EQ(report, Packet("\2A note.\n") +
                        Packet("\1" + Packet("unpack ok\n") +
                               Packet("ng refs/heads/main because\n") + "0000") +
                        "0000");
  PushRequest plain;
  ASSERT_TRUE(plain.Feed(First("refs/heads/ma\nin", "report-status") + "0000"));
  EXPECT_EQ(RefusalReport(plain, {"because"}, "A note."),
            Packet("unpack ok\n") + Packet("ng refs/heads/ma?in because\n") + "0000");
}

class RouteTest : public ::testing::Test {
 protected:
  Route Find(const std::string& method, const std::string& target) {
    return FindRoute({.method = method, .target = target}, grant, models);
  }
  Grant grant{.repository = {"https://forge.example", "Octo", "repo"}, .push_prefixes = {"task-7"}};
  std::vector<ModelRoute> models = {{"m", "https://model.example/v9", "x-api-key", "s3cret"}};
};

TEST_F(RouteTest, OnlyGitsSmartProtocol) {
  using Kind = Route::Kind;
  EXPECT_EQ(Find("GET", "/octo/Repo.git/info/refs?service=git-upload-pack").kind,
            Kind::kUploadRefs);
  EXPECT_EQ(Find("GET", "/Octo/repo/info/refs?service=git-receive-pack").kind, Kind::kReceiveRefs);
  EXPECT_EQ(Find("POST", "/Octo/repo.git/git-upload-pack").kind, Kind::kUpload);
  EXPECT_EQ(Find("POST", "/Octo/repo.git/git-receive-pack").kind, Kind::kReceive);
  for (const char* target :
       {"/", "/Octo/repo.git", "/Octo/repo.git/HEAD", "/Octo/repo.git/info/refs",
        "/Octo/repo.git/info/refs?service=git-upload-pack&x=1", "/Octo/repo.git/objects/info/packs",
        "/Octo/repo.git/info/refs?service=git-upload-archive", "/Octo/repo.git/git-upload-pack",
        "/Octo/repo2/info/refs?service=git-upload-pack", "/Octo/repo.git.git/git-upload-pack",
        "/other/repo.git/info/refs?service=git-upload-pack"})
    EXPECT_EQ(Find("GET", target).kind, Kind::kRefused) << target;
  grant.push_prefixes.clear();
  EXPECT_EQ(Find("POST", "/Octo/repo.git/git-receive-pack").kind, Kind::kRefused);
}

TEST_F(RouteTest, PathsThatAreNotPlainAreRefused) {
  for (const char* target :
       {"/Octo/repo.git/../other.git/git-upload-pack", "/Octo/%2e%2e/x/git-upload-pack",
        "/x/%2E%2E/Octo/repo.git/git-upload-pack",
        "http://forge.example/Octo/repo.git/git-upload-pack", "//Octo/repo.git/git-upload-pack",
        "/Octo%2frepo.git/git-upload-pack", "*", "/Octo/repo.git\\git-upload-pack",
        "/Octo/repo.git/%00/git-upload-pack", "/Octo/repo.git/%zz/git-upload-pack",
        "/model/m/../../x", "/model/m/%2e%2e/x"})
    EXPECT_EQ(Find("POST", target).kind, Route::Kind::kRefused) << target;
}

TEST_F(RouteTest, LfsIsNamed) {
  Route route = Find("POST", "/Octo/repo.git/info/lfs/objects/batch");
  EXPECT_EQ(route.status, 501u);
  EXPECT_THAT(route.message, HasSubstr("LFS is not supported"));
}

TEST_F(RouteTest, ModelsByName) {
  Route route = Find("POST", "/model/m/v1/messages?beta=true");
  ASSERT_EQ(route.kind, Route::Kind::kModel);
  EXPECT_EQ(route.target, "/v1/messages?beta=true");
  EXPECT_EQ(Find("POST", "/model/mm/v1").kind, Route::Kind::kRefused);
  http::Headers headers = ModelRequestHeaders({{"Authorization", "Bearer mine"},
                                               {"X-Api-Key", "mine"},
                                               {"Host", "elsewhere"},
                                               {"Cookie", "c"},
                                               {"Connection", "X-Odd, close"},
                                               {"X-Odd", "1"},
                                               {"anthropic-version", "1"}},
                                              models[0]);
  EXPECT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers.Value("x-api-key"), "s3cret");
  EXPECT_EQ(headers.Value("anthropic-version"), "1");
}

TEST(ModelRoutes, AreRead) {
  auto routes = ParseModelRoutes(
      "anthropic=https://api.anthropic.com A_KEY, openai=https://api.openai.com/ O_KEY\n"
      "gemini=https://generativelanguage.googleapis.com O_KEY\nown=http://10.0.0.1:8080/v1 A_KEY "
      "api-key",
      {{"A_KEY", "a "}, {"O_KEY", "o"}});
  ASSERT_TRUE(routes) << routes.error().message();
  ASSERT_EQ(routes->size(), 4u);
  EXPECT_EQ((*routes)[0].header, "x-api-key");
  EXPECT_EQ((*routes)[0].value, "a");
  EXPECT_EQ((*routes)[1].header, "authorization");
  EXPECT_EQ((*routes)[1].value, "Bearer o");
  EXPECT_EQ((*routes)[2].header, "x-goog-api-key");
  EXPECT_EQ((*routes)[3].header, "api-key");
  EXPECT_TRUE(ParseModelRoutes("", {})->empty());
  for (const char* bad :
       {"x", "x=y KEY", "x=https://h", "x=https://h NONE", "X=https://h KEY", "x=https://h KEY a b",
        "x=https://u:p@h KEY", "x=https://h KEY,x=https://i KEY"})
    EXPECT_FALSE(ParseModelRoutes(bad, {{"KEY", "k"}})) << bad;
}

TEST(Origin, IsParsed) {
  auto origin = ParseOrigin("https://forge.example/base/");
  ASSERT_TRUE(origin);
  EXPECT_EQ(origin->host_port, "forge.example:443");
  EXPECT_EQ(origin->path, "/base");
  EXPECT_EQ(ParseOrigin("http://[::1]")->host_port, "[::1]:80");
  EXPECT_EQ(ParseOrigin("http://h:81")->host_port, "h:81");
  for (const char* bad : {"", "h", "ftp://h", "https://", "https://u@h", "https://h?x"})
    EXPECT_FALSE(ParseOrigin(bad)) << bad;
}

TEST(Origin, RedirectionsStayThere) {
  Origin origin = *ParseOrigin("https://forge.example");
  EXPECT_EQ(SameOriginTarget(origin, "/a?b"), "/a?b");
  EXPECT_EQ(SameOriginTarget(origin, "https://forge.example/a"), "/a");
  for (const char* bad :
       {"", "a", "//evil.example/a", "https://evil.example/a", "http://forge.example/a",
        "https://forge.example.evil/a", "https://forge.example@evil/a",
        "https://forge.example//evil.example/a", "https://forge.example:444/a"})
    EXPECT_FALSE(SameOriginTarget(origin, bad)) << bad;
}

}  // namespace
}  // namespace caisson::git

#include "git/broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

#include "base/encoding.h"
#include "base/id.h"
#include "git/broker_fixture_test.h"
#include "git/pkt_line.h"

namespace caisson::git {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(BrokerTest, CloneFetchAndPushWithTheTokenOutside) {
  std::string said = GitOk({"-c", "http.extraHeader=X-Trace: 1", "clone", "-v", url, work});
  GitOk({"switch", "-q", "-c", "task-7"}, work);
  std::ofstream(work + "/new.txt") << "new\n";
  GitOk({"add", "-A"}, work);
  GitOk({"commit", "-q", "-m", "feat: new"}, work);
  said += GitOk({"push", "-u", "origin", "task-7"}, work);
  EXPECT_THAT(RemoteRefs(), HasSubstr("refs/heads/task-7"));
  CommitTo(remote, "main", "later.txt", "x\n");
  said += GitOk({"fetch", "origin"}, work);
  GitOk({"push", "origin", ":task-7"}, work);
  EXPECT_THAT(RemoteRefs(), Not(HasSubstr("refs/heads/task-7")));
  // Not even in what git itself notes down.
  EXPECT_THAT(said + Must({"grep", "-r", "", work + "/.git/config"}),
              Not(HasSubstr(std::string(kToken))));
  EXPECT_EQ(Execute({.argv = {"grep", "-rq", std::string(kToken), work}}, "/").exit_code, 1);
  for (const auto& request : forge->seen()) {
    EXPECT_FALSE(request.headers.Has("X-Trace")) << "only what the protocol needs goes out";
    EXPECT_EQ(request.headers.Value("Host"), fmt::format("127.0.0.1:{}", forge->port()));
  }
  EXPECT_GE(numbers().fetches, 2u);
  EXPECT_EQ(numbers().pushes, 2u);
  EXPECT_EQ(numbers().refused, 0u);
}

TEST_F(BrokerTest, ThePlatformsOwnOperationsGoThroughIt) {
  LocalRunner runner(temp / "home");
  Config settings;
  settings.git_retry_min_ms = 1;
  asio::io_context io;
  std::vector<Progress> progress;
  git::Git git(runner, settings, work,
               {.progress = [&](const Progress& step) { progress.push_back(step); }});
  using caisson::testing::Await;
  auto cloned = Await(io, git.Clone(url, "main", 1));
  ASSERT_TRUE(cloned) << cloned.error().message();
  EXPECT_THAT(progress, ::testing::Contains(::testing::Field(&Progress::percent, 100)));
  ASSERT_TRUE(Await(io, git.Branch("task-7", "main")));
  std::ofstream(work + "/a.txt") << "a";
  ASSERT_TRUE(Await(io, git.Stage({})));
  auto made = Await(io, git.Commit("feat: a", "", "", {}));
  ASSERT_TRUE(made) << made.error().message();
  // The forge hangs up in the middle, twice: once before and once after it took the push.
  std::atomic<int> pushes = 0;
  forge->Plant([&](http::Exchange& exchange, const TestForge::Seen& seen) -> Task<bool> {
    bool push = seen.method == "POST" && seen.target.ends_with("git-receive-pack");
    if (!push || ++pushes > 1) co_return false;
    exchange.Abort();
    co_return true;
  });
  auto pushed = Await(io, git.Push("task-7"));
  ASSERT_TRUE(pushed) << pushed.error().message();
  EXPECT_EQ(pushes, 2);
  auto other = Await(io, git.Push("main"));
  EXPECT_TRUE(other || other.error().code() == Code::kFailedPrecondition);
  ASSERT_TRUE(Await(io, git.Branch("elsewhere", "")));
  auto refused = Await(io, git.Push("elsewhere"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().message(), HasSubstr("may push only to task-7"));
}

TEST_F(BrokerTest, PushesElsewhereAreRefusedInGitsWords) {
  MakeWork();
  std::string before = RemoteRefs();
  for (const char* refspec :
       {"HEAD:main", "+HEAD:main", ":main", "HEAD:refs/heads/task-70", "HEAD:refs/heads/other",
        "HEAD:refs/tags/v1", "HEAD:refs/pull/1/head"}) {
    auto push = Git({"push", "origin", refspec}, work);
    EXPECT_NE(push.exit_code, 0) << refspec;
    EXPECT_THAT(push.stderr_text, HasSubstr("[remote rejected]")) << refspec;
    EXPECT_THAT(push.stderr_text,
                AnyOf(HasSubstr("(this sandbox may push only to task-7)"),
                      HasSubstr("(only branches may be pushed from this sandbox)")))
        << refspec;
    EXPECT_THAT(push.stderr_text, HasSubstr("remote: Refused: ")) << refspec;
  }
  // One bad ref refuses all of them.
  auto mixed = Git({"push", "origin", "HEAD:task-7", "HEAD:main"}, work);
  EXPECT_THAT(mixed.stderr_text, HasSubstr("refused together with others"));
  auto options = Git({"push", "-o", "ci.skip", "origin", "HEAD:task-7"}, work);
  EXPECT_THAT(options.stderr_text, HasSubstr("push options are not passed on"));
  EXPECT_EQ(RemoteRefs(), before);
  EXPECT_EQ(forge->Count("POST", "git-receive-pack"), 0u) << "nothing of them went out";
  EXPECT_EQ(numbers().refused, 9u);
}

TEST_F(BrokerTest, OtherRepositoriesAndPathsAreOutOfReach) {
  std::filesystem::create_directories(root + "/octo/other");
  MakeRemote(root + "/octo/other.git");
  std::string base = fmt::format("http://127.0.0.1:{}", port);
  for (const char* path : {"/octo/other.git", "/evil/repo.git", "/octo/repo.git/../other.git"}) {
    auto listed = Git({"ls-remote", base + path});
    EXPECT_EQ(listed.exit_code, 128) << path;
    EXPECT_THAT(listed.stderr_text, AnyOf(HasSubstr("may use the repository octo/repo only"),
                                          HasSubstr("not a path that is served here")))
        << path;
  }
  EXPECT_THAT(forge->seen(), IsEmpty());
}

TEST_F(BrokerTest, WithoutPrefixesNothingIsPushed) {
  Grant grant = MakeGrant();
  grant.push_prefixes.clear();
  MakeWork();
  uint16_t other = Open("s2", grant);
  auto push =
      Git({"push", fmt::format("http://127.0.0.1:{}/octo/repo.git", other), "task-7"}, work);
  EXPECT_NE(push.exit_code, 0);
  EXPECT_THAT(push.stderr_text, HasSubstr("This sandbox may not push"));
}

TEST_F(BrokerTest, TagsIfTheyMay) {
  Grant grant = MakeGrant();
  grant.push_tags = true;
  MakeWork();
  uint16_t other = Open("s2", grant);
  std::string there = fmt::format("http://127.0.0.1:{}/octo/repo.git", other);
  GitOk({"push", there, "HEAD:refs/tags/v1"}, work);
  EXPECT_THAT(RemoteRefs(), HasSubstr("refs/tags/v1"));
  EXPECT_NE(Git({"push", there, ":refs/tags/v1"}, work).exit_code, 0);
}

TEST_F(BrokerTest, ShallowClonesCanPush) {
  CommitTo(remote, "main", "b.txt", "x\n");
  GitOk({"clone", "-q", "--depth=1", url, work});
  EXPECT_THAT(GitOk({"rev-list", "--count", "HEAD"}, work), HasSubstr("1"));
  std::ofstream(work + "/c.txt") << "c";
  GitOk({"add", "-A"}, work);
  GitOk({"commit", "-q", "-m", "feat: c"}, work);
  GitOk({"push", "-q", "origin", "HEAD:task-7"}, work);
  EXPECT_THAT(RemoteRefs(), HasSubstr("refs/heads/task-7"));
}

TEST_F(BrokerTest, LargePacksBothWays) {
  MakeWork();
  constexpr size_t kSize = 24 << 20;
  std::string noise(kSize, '\0');
  FillRandom(noise.data(), noise.size());
  std::ofstream(work + "/noise.bin", std::ios::binary) << noise;
  GitOk({"add", "-A"}, work);
  GitOk({"commit", "-q", "-m", "feat: noise"}, work);
  GitOk({"push", "-q", "origin", "task-7"}, work);
  GitOk({"clone", "-q", "--branch=task-7", url, temp / "again"});
  auto again = ReadFile(temp / "again/noise.bin", kSize);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_TRUE(*again == noise);
  // Refused after all of it was sent, and git still hears why.
  auto refused = Git({"push", "origin", "HEAD:main"}, work);
  EXPECT_THAT(refused.stderr_text, HasSubstr("may push only to task-7"));
}

TEST_F(BrokerTest, RequestsThatGitPacksGoOnAsTheyAre) {
  // Enough branches that the list of what a clone wants is worth packing.
  sdk::Command import{.argv = {"git", "fast-import", "--quiet"}, .cwd = remote};
  for (int i = 0; i < 40; ++i)
    import.stdin_text += fmt::format(
        "commit refs/heads/b{}\ncommitter A <a@example.com> {} +0000\ndata 2\nb\n", i, i);
  ASSERT_EQ(Execute(import, "/").exit_code, 0);
  GitOk({"clone", "-q", url, work});
  bool packed = false;
  for (const auto& request : forge->seen()) packed |= request.headers.Has("Content-Encoding");
  EXPECT_TRUE(packed);
  EXPECT_THAT(GitOk({"branch", "-r"}, work), HasSubstr("origin/b39"));
}

std::string Gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string PushBody(const std::string& ref) {
  using namespace std::string_literals;
  return Packet(std::string(40, '0') + " " + std::string(40, '1') + " " + ref +
                "\0 report-status"s) +
         "0000";
}

std::string PostPush(std::string_view body, std::string_view more = "") {
  return fmt::format(
      "POST /octo/repo.git/git-receive-pack HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{}\r\n{}",
      body.size(), more, body);
}

TEST_F(BrokerTest, PackedPushesAreReadToo) {
  http::RawClient client(port);
  std::string body = Gzip(PushBody("refs/heads/main"));
  client.Send(PostPush(body, "Content-Encoding: gzip\r\n"));
  auto answer = client.ReadAnswer();
  EXPECT_EQ(answer.status, 200u);
  EXPECT_THAT(answer.body, HasSubstr("ng refs/heads/main this sandbox may push only to"));
  // One that is good goes on unpacked, so that nobody reads it in another way.
  std::string good = PushBody("refs/heads/task-7");
  client.Send(PostPush(Gzip(good), "Content-Encoding: gzip\r\n"));
  EXPECT_EQ(client.ReadAnswer().status, 200u);
  auto seen = forge->seen();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].body, good);
  EXPECT_FALSE(seen[0].headers.Has("Content-Encoding"));
  for (const std::string& bad : {std::string("not gzip"), body + body, body.substr(0, 20)}) {
    http::RawClient other(port);
    other.Send(PostPush(bad, "Content-Encoding: gzip\r\n"));
    EXPECT_EQ(other.ReadAnswer().status, bad == body + body ? 200u : 400u);
  }
  http::RawClient coded(port);
  coded.Send(PostPush(good, "Content-Encoding: br\r\n"));
  EXPECT_EQ(coded.ReadAnswer().status, 415u);
  EXPECT_EQ(forge->seen().size(), 1u);
}

// ---- the forge --------------------------------------------------------------------------------

Task<Result<std::string>> OldThenNew(bool refresh, std::atomic<int>* refreshed) {
  if (refresh) ++*refreshed;
  co_return *refreshed > 0 ? std::string(kToken) : "expired";
}

TEST_F(BrokerTest, ARefusedTokenIsRenewedOnce) {
  std::atomic<int> refreshed = 0;
  Grant grant = MakeGrant();
  grant.credential = [&](Repository, bool refresh) { return OldThenNew(refresh, &refreshed); };
  uint16_t where = Open("s2", grant);
  GitOk({"clone", "-q", fmt::format("http://127.0.0.1:{}/octo/repo.git", where), work});
  EXPECT_EQ(refreshed, 1);
}

TEST_F(BrokerTest, ATokenThatStaysRefusedIsNotAskedForInside) {
  uint16_t where = Open("s2", MakeGrant("wrong"));
  auto clone = Git({"clone", fmt::format("http://127.0.0.1:{}/octo/repo.git", where), work});
  EXPECT_EQ(clone.exit_code, 128);
  EXPECT_THAT(clone.stderr_text, HasSubstr("refused the server's credential"));
  EXPECT_THAT(clone.stderr_text, HasSubstr("403"));
  EXPECT_EQ(forge->seen().size(), 2u);
}

TEST_F(BrokerTest, WithoutACredentialPublicOnesWork) {
  forge->Require("");
  Grant grant = MakeGrant();
  grant.credential = nullptr;
  uint16_t where = Open("s2", grant);
  GitOk({"clone", "-q", fmt::format("http://127.0.0.1:{}/octo/repo.git", where), work});
  EXPECT_FALSE(forge->seen()[0].headers.Has("Authorization"));
}

Task<bool> AnswerStatus(http::Exchange& exchange, unsigned status, std::string location) {
  http::Response response = http::Response::Text(status, "The forge says no.");
  response.headers.Set("Set-Cookie", "a=b");
  response.headers.Set("WWW-Authenticate", "Basic");
  if (!location.empty()) response.headers.Set("Location", location);
  (void)co_await exchange.Send(std::move(response));
  co_return true;
}

TEST_F(BrokerTest, StatusesOfTheForge) {
  for (unsigned status : {403u, 404u, 418u, 429u, 500u, 503u}) {
    forge->Plant([status](http::Exchange& exchange, const TestForge::Seen&) {
      return AnswerStatus(exchange, status, "");
    });
    http::RawClient client(port);
    client.Send("GET /octo/repo.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\n\r\n");
    auto answer = client.ReadAnswer();
    EXPECT_EQ(answer.status, status == 418 ? 502 : status);
    EXPECT_THAT(answer.body, HasSubstr("The forge says no."));
    EXPECT_EQ(answer.Header("Set-Cookie"), "");
    EXPECT_EQ(answer.Header("WWW-Authenticate"), "");
  }
}

TEST_F(BrokerTest, RedirectionsAreFollowedToTheSameRepositoryOnly) {
  std::string to;
  forge->Plant([&](http::Exchange& exchange, const TestForge::Seen& seen) -> Task<bool> {
    if (!seen.target.starts_with("/octo/repo.git/info")) co_return false;
    co_return co_await AnswerStatus(exchange, 301, to);
  });
  std::filesystem::create_symlink(remote, root + "/octo/repo");
  to = "/octo/repo/info/refs?service=git-upload-pack";
  GitOk({"clone", "-q", url, work});
  EXPECT_EQ(forge->Count("POST", "/octo/repo/git-upload-pack"), 2u);
  for (std::string elsewhere :
       {std::string("https://evil.example/octo/repo/info/refs?service=git-upload-pack"),
        forge->base_url() + "/octo/other.git/info/refs?service=git-upload-pack",
        std::string("//evil.example/octo/repo.git/info/refs?service=git-upload-pack"),
        std::string("/octo/repo.git/info/refs?service=git-upload-pack")}) {
    to = elsewhere;
    uint16_t where = Open("s2", MakeGrant());
    forge->Forget();
    auto listed = Git({"ls-remote", fmt::format("http://127.0.0.1:{}/octo/repo.git", where)});
    EXPECT_EQ(listed.exit_code, 128) << elsewhere;
    EXPECT_THAT(listed.stderr_text, HasSubstr("which is not followed")) << elsewhere;
    EXPECT_LE(forge->seen().size(), 4u);
  }
}

TEST_F(BrokerTest, AForgeThatHangsUpInTheMiddle) {
  forge->Plant([](http::Exchange& exchange, const TestForge::Seen& seen) -> Task<bool> {
    if (seen.method != "POST") co_return false;
    http::ResponseHead head{.headers = {{"Content-Type", "application/x-git-upload-pack-result"}}};
    (void)co_await exchange.StartStream(head, std::nullopt, "0011packfile\n");
    exchange.Abort();
    co_return true;
  });
  auto clone = Git({"-c", "protocol.version=0", "clone", url, work});
  EXPECT_EQ(clone.exit_code, 128);
  EXPECT_EQ(FailureName(ClassifyStderr(clone.stderr_text)), "network") << clone.stderr_text;
}

TEST_F(BrokerTest, AForgeThatIsNotThere) {
  std::string where = fmt::format("127.0.0.1:{}", forge->port());
  forge.reset();
  auto clone = Git({"clone", url, work});
  EXPECT_THAT(clone.stderr_text, HasSubstr(where + " cannot be reached"));
  EXPECT_EQ(FailureName(ClassifyStderr(clone.stderr_text)), "network") << clone.stderr_text;
}

// ---- hostile clients --------------------------------------------------------------------------

TEST_F(BrokerTest, StrangeRequestsGoNowhere) {
  for (const std::string& request :
       {std::string("GET http://evil.example/octo/other.git/info/refs?service=git-upload-pack "
                    "HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
        std::string("GET /octo/%2e%2e/octo/repo.git/info/refs?service=git-upload-pack "
                    "HTTP/1.1\r\nHost: x\r\n\r\n"),
        std::string("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
        std::string("GET /octo/repo.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\n"
                    "Content-Length: 3\r\n\r\nabc"),
        std::string(
            "POST /octo/repo.git/git-receive-pack HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        PostPush("ffff" + std::string(70'000, 'x')), PostPush("0000PACK"), PostPush("00"),
        PostPush(""), PostPush("0004"), PostPush(Packet("push-cert"))}) {
    http::RawClient client(port);
    client.Send(request);
    auto answer = client.ReadAnswer();
    EXPECT_GE(answer.status, 400u) << request.substr(0, 100);
    EXPECT_LT(answer.status, 500u) << request.substr(0, 100);
  }
  EXPECT_THAT(forge->seen(), IsEmpty());
}

TEST_F(BrokerTest, WhatItIsCalledAndWhatItIsToldDoNotMatter) {
  http::RawClient client(port);
  // Two at once, with credentials and a host of the sender's choice.
  std::string request =
      "GET /octo/repo.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: evil.example\r\n"
      "Authorization: Basic bWluZTptaW5l\r\nX-Forwarded-Host: evil.example\r\nCookie: a=b\r\n"
      "Git-Protocol: version=2\r\n\r\n";
  // The host of an absolute target counts as little as the header.
  std::string absolute = "GET http://evil.example" + request.substr(4);
  client.Send(request + absolute);
  for (int i = 0; i < 2; ++i) {
    auto answer = client.ReadAnswer();
    EXPECT_EQ(answer.status, 200u);
    EXPECT_EQ(answer.Header("Set-Cookie"), "");
    EXPECT_EQ(answer.Header("Content-Type"), "application/x-git-upload-pack-advertisement");
    EXPECT_THAT(answer.body, HasSubstr("version 2"));
  }
  EXPECT_EQ(forge->seen().size(), 2u);
  for (const auto& seen : forge->seen()) {
    EXPECT_EQ(seen.headers.Value("Authorization"),
              "Basic " + Base64Encode("x-access-token:" + std::string(kToken)));
    EXPECT_FALSE(seen.headers.Has("Cookie"));
    EXPECT_FALSE(seen.headers.Has("X-Forwarded-Host"));
  }
}

TEST_F(BrokerTest, LfsSaysWhatItIs) {
  http::RawClient client(port);
  client.Send(
      "POST /octo/repo.git/info/lfs/objects/batch HTTP/1.1\r\nHost: x\r\nContent-Length: "
      "2\r\n\r\n{}");
  auto answer = client.ReadAnswer();
  EXPECT_EQ(answer.status, 501u);
  EXPECT_EQ(answer.Header("Content-Type"), "application/vnd.git-lfs+json");
  EXPECT_EQ(answer.body, "{\"message\":\"Git LFS is not supported here.\"}");
}

TEST_F(BrokerTest, ConnectionsAreCountedPerSandbox) {
  Config few = config;
  few.broker_max_connections = 1;
  auto small = loop.Call([&] { return std::make_unique<Broker>(loop.executor(), few); });
  std::swap(small, broker);
  uint16_t where = Open("s", MakeGrant());
  {
    http::RawClient first(where);
    first.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(first.ReadAnswer().status, 403u);
    http::RawClient second(where);
    EXPECT_THAT(second.ReadToEnd(), AnyOf("", "RST"));
  }
  std::swap(small, broker);
  loop.Run(small->Stop());
  loop.Call([&] {
    small.reset();
    return 0;
  });
}

TEST_F(BrokerTest, OpenAndClose) {
  EXPECT_TRUE(loop.Call([&] { return broker->IsOpen("s1"); }));
  loop.Call([&] {
    broker->Close("s1");
    return 0;
  });
  EXPECT_FALSE(loop.Call([&] { return broker->IsOpen("s1"); }));
  EXPECT_EQ(Git({"ls-remote", url}).exit_code, 128);
  Open("s1", MakeGrant());
  uint16_t again = Open("s1", MakeGrant());
  GitOk({"ls-remote", fmt::format("http://127.0.0.1:{}/octo/repo.git", again)});
  Grant bad = MakeGrant();
  bad.repository.base_url = "ftp://x";
  EXPECT_FALSE(loop.Call([&] { return broker->Open("s3", UniqueFd(), bad); }));
  EXPECT_EQ(Broker::RemoteUrl(bad.repository), "http://127.0.0.1:49990/octo/repo.git");
  EXPECT_EQ(Broker::ModelUrl("m"), "http://127.0.0.1:49990/model/m");
}

// ---- models -----------------------------------------------------------------------------------

TEST_F(BrokerTest, ModelsGetTheirKeyAndStream) {
  std::atomic<bool> go_on = false;
  forge->Plant([&](http::Exchange& exchange, const TestForge::Seen&) -> Task<bool> {
    http::ResponseHead head{
        .headers = {{"Content-Type", "text/event-stream"}, {"Set-Cookie", "a=b"}}};
    (void)co_await exchange.StartStream(head, std::nullopt, "data: 1\n\n");
    for (int i = 0; i < 12'000 && !go_on; ++i) co_await SleepFor(std::chrono::milliseconds(5));
    (void)co_await exchange.FinishStream("data: 2\n\n");
    co_return true;
  });
  http::RawClient client(port);
  client.Send(
      "POST /model/echo/v1/messages?beta=1 HTTP/1.1\r\nHost: evil.example\r\nX-Api-Key: mine\r\n"
      "Authorization: Bearer mine\r\nanthropic-version: 1\r\nContent-Length: 2\r\n\r\n{}");
  std::string begun;
  while (begun.find("data: 1") == std::string::npos) {
    std::string more = client.ReadSome();
    ASSERT_FALSE(more.empty());
    begun += more;
  }
  EXPECT_THAT(begun, Not(HasSubstr("data: 2")))
      << "the first event comes before the second is made";
  EXPECT_THAT(begun, Not(HasSubstr("Set-Cookie")));
  go_on = true;
  client.CloseWrite();
  auto seen = forge->seen();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].target, "/v9/v1/messages?beta=1");
  EXPECT_EQ(seen[0].headers.Value("x-api-key"), "sk-model-key");
  EXPECT_FALSE(seen[0].headers.Has("Authorization"));
  EXPECT_EQ(seen[0].headers.Value("anthropic-version"), "1");
  EXPECT_EQ(seen[0].headers.Value("Host"), fmt::format("127.0.0.1:{}", forge->port()));
  EXPECT_EQ(numbers().model_requests, 1u);
}

TEST_F(BrokerTest, ModelsErrorsPassAndRedirectionsDoNot) {
  for (unsigned status : {400u, 401u, 429u, 529u, 302u}) {
    forge->Plant([status](http::Exchange& exchange, const TestForge::Seen&) {
      return AnswerStatus(exchange, status, "https://evil.example/");
    });
    http::RawClient client(port);
    client.Send("POST /model/echo/v1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
    auto answer = client.ReadAnswer();
    EXPECT_EQ(answer.status, status == 302 ? 502 : status);
    EXPECT_EQ(answer.Header("Location"), "");
    EXPECT_EQ(answer.Header("WWW-Authenticate"), "");
  }
  for (const char* request : {"GET /model/none/x HTTP/1.1\r\nHost: x\r\n\r\n",
                              "GET /model/echo/%2e%2e/x HTTP/1.1\r\nHost: x\r\n\r\n",
                              "OPTIONS /model/echo/x HTTP/1.1\r\nHost: x\r\n\r\n"}) {
    http::RawClient client(port);
    client.Send(request);
    EXPECT_GE(client.ReadAnswer().status, 400u) << request;
  }
  EXPECT_EQ(forge->seen().size(), 5u);
}

}  // namespace
}  // namespace caisson::git

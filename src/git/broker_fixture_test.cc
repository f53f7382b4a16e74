#include "git/broker_fixture_test.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::git {
namespace {

constexpr size_t kMaxBody = 256 << 20;

// One request to `git http-backend`, by CGI.
http::Response AskGit(const std::string& root, const TestForge::Seen& request) {
  http::RequestHead head{.method = request.method, .target = request.target};
  sdk::Command command{.argv = {"git", "http-backend"},
                       .stdin_text = request.body,
                       .timeout = std::chrono::milliseconds(60'000),
                       .max_output = kMaxBody};
  command.env = {{"LC_ALL", "C"},
                 {"GIT_CONFIG_GLOBAL", "/dev/null"},
                 {"GIT_PROJECT_ROOT", root},
                 {"GIT_HTTP_EXPORT_ALL", "1"},
                 {"REMOTE_ADDR", "127.0.0.1"},
                 {"REMOTE_USER", "someone"},
                 {"REQUEST_METHOD", request.method},
                 {"PATH_INFO", std::string(head.Path())},
                 {"QUERY_STRING", std::string(head.QueryString())},
                 {"CONTENT_TYPE", std::string(request.headers.Value("Content-Type"))},
                 {"CONTENT_LENGTH", std::to_string(request.body.size())},
                 {"HTTP_CONTENT_ENCODING", std::string(request.headers.Value("Content-Encoding"))},
                 {"GIT_PROTOCOL", std::string(request.headers.Value("Git-Protocol"))}};
  auto done = Execute(command, "/nonexistent");
  http::Response response;
  size_t end = done.stdout_text.find("\r\n\r\n");
  if (end == std::string::npos) return http::Response::Text(500, done.stderr_text);
  for (std::string_view line : Split(std::string_view(done.stdout_text).substr(0, end), '\n')) {
    size_t colon = line.find(": ");
    std::string_view name = line.substr(0, colon), value = Trim(line.substr(colon + 2));
    if (name == "Status")
      response.status = ParseInt<unsigned>(value.substr(0, 3)).value_or(500);
    else
      response.headers.Add(name, value);
  }
  response.headers.Add("Set-Cookie", "session=of-the-forge");
  response.body = done.stdout_text.substr(end + 4);
  return response;
}

UniqueFd ListenSomewhere(uint16_t& port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(socket.get(), 16), 0);
  EXPECT_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  port = ntohs(address.sin_port);
  return socket;
}

Task<Result<std::string>> GiveToken(std::string token) { co_return token; }

}  // namespace

TestForge::TestForge(std::string root)
    : root_(std::move(root)),
      server_([this](http::Exchange& exchange) { return Serve(exchange); }) {}

Task<void> TestForge::Serve(http::Exchange& exchange) {
  const http::RequestHead& head = exchange.request();
  Seen seen{head.method, head.target, head.headers, ""};
  auto body = co_await exchange.ReadAll(kMaxBody);
  if (!body) co_return;
  seen.body = std::move(*body);
  Instead instead;
  std::string wanted;
  {
    std::lock_guard guard(mutex_);
    seen_.push_back(seen);
    instead = instead_;
    if (!token_.empty()) wanted = "Basic " + Base64Encode("x-access-token:" + token_);
  }
  if (instead && co_await instead(exchange, seen)) co_return;
  if (head.headers.Value("Authorization") != wanted) {
    http::Response response = http::Response::Text(401, "Who are you?");
    response.headers.Set("WWW-Authenticate", "Basic realm=\"forge\"");
    (void)co_await exchange.Send(std::move(response));
    co_return;
  }
  (void)co_await exchange.Send(AskGit(root_, seen));
}

std::vector<TestForge::Seen> TestForge::seen() const {
  std::lock_guard guard(mutex_);
  return seen_;
}

size_t TestForge::Count(std::string_view method, std::string_view part) const {
  size_t count = 0;
  for (const Seen& one : seen())
    count += one.method == method && one.target.find(part) != std::string::npos;
  return count;
}

void TestForge::Forget() {
  std::lock_guard guard(mutex_);
  seen_.clear();
}

void TestForge::Require(std::string token) {
  std::lock_guard guard(mutex_);
  token_ = std::move(token);
}

void TestForge::Plant(Instead instead) {
  std::lock_guard guard(mutex_);
  instead_ = std::move(instead);
}

BrokerTest::BrokerTest() {
  std::filesystem::create_directories(root + "/octo");
  MakeRemote(remote);
  Must({"git", "config", "http.receivepack", "true"}, remote);
  Must({"git", "config", "receive.advertisePushOptions", "true"}, remote);
  config.shutdown_grace_ms = 0;
  forge = std::make_unique<TestForge>(root);
  forge->Require(std::string(kToken));
  config.github_url = forge->base_url();
  models = {{"echo", forge->base_url() + "/v9", "x-api-key", "sk-model-key"}};
  loop.Call([this] {
    broker = std::make_unique<Broker>(loop.executor(), config, models);
    return 0;
  });
  port = Open("s1", MakeGrant());
  url = fmt::format("http://127.0.0.1:{}/octo/repo.git", port);
}

BrokerTest::~BrokerTest() {
  loop.Run(broker->Stop());
  loop.Call([this] {
    broker.reset();
    return 0;
  });
}

uint16_t BrokerTest::Open(const std::string& sandbox, Grant grant) {
  uint16_t where = 0;
  UniqueFd listener = ListenSomewhere(where);
  auto opened = loop.Call([&] { return broker->Open(sandbox, std::move(listener), grant); });
  EXPECT_TRUE(opened) << opened.error().message();
  return where;
}

Grant BrokerTest::MakeGrant(std::string token) {
  return {.repository = {forge->base_url(), "octo", "repo"},
          .push_prefixes = {"task-7"},
          .credential = [token](Repository, bool) { return GiveToken(token); }};
}

sdk::CommandResult BrokerTest::Git(std::vector<std::string> args, const std::string& dir) {
  args.insert(args.begin(), "git");
  sdk::Command command{.argv = args,
                       .cwd = dir,
                       .timeout = std::chrono::milliseconds(60'000),
                       .max_output = 8 << 20};
  command.env = {{"LC_ALL", "C"},
                 {"GIT_TERMINAL_PROMPT", "0"},
                 {"GIT_CONFIG_GLOBAL", "/dev/null"},
                 {"GIT_AUTHOR_NAME", "A"},
                 {"GIT_AUTHOR_EMAIL", "a@example.com"},
                 {"GIT_COMMITTER_NAME", "A"},
                 {"GIT_COMMITTER_EMAIL", "a@example.com"}};
  auto result = Execute(command, temp.path());
  EXPECT_FALSE(result.timed_out) << args[1];
  result.stderr_text += result.stdout_text;
  return result;
}

std::string BrokerTest::GitOk(std::vector<std::string> args, const std::string& dir) {
  auto result = Git(args, dir);
  EXPECT_EQ(result.exit_code, 0) << args[0] << ": " << result.stderr_text;
  return result.stderr_text;
}

void BrokerTest::MakeWork() {
  GitOk({"clone", "-q", url, work});
  GitOk({"switch", "-q", "-c", "task-7"}, work);
  std::ofstream(work + "/new.txt") << "new\n";
  GitOk({"add", "-A"}, work);
  GitOk({"commit", "-q", "-m", "feat: new"}, work);
  forge->Forget();
}

Broker::Numbers BrokerTest::numbers() {
  return loop.Call([this] { return broker->numbers(); });
}

}  // namespace caisson::git

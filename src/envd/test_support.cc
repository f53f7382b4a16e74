#include "envd/test_support.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "base/encoding.h"
#include "base/id.h"
#include "envd/auth.h"
#include "http/connect_rpc.h"

namespace caisson::envd {
namespace {

Task<Result<Reply>> FetchAll(http::ClientConnection& connection, http::RequestHead head,
                             std::string body) {
  CO_TRY_ASSIGN(http::Response response,
                co_await connection.Fetch(std::move(head), std::move(body), 512 << 20));
  co_return Reply{response.status, std::move(response.headers), std::move(response.body)};
}

Task<Result<std::string>> ReadSome(http::ClientConnection& connection) {
  std::string buffer(64 << 10, '\0');
  CO_TRY_ASSIGN(size_t size, co_await connection.ReadBody(buffer));
  buffer.resize(size);
  co_return buffer;
}

Task<Status> OpenStream(http::ClientConnection& connection, http::RequestHead head,
                        std::string body, bool finish) {
  CO_TRY(co_await connection.SendHead(
      std::move(head), finish ? std::optional<uint64_t>(body.size()) : std::nullopt, body));
  if (finish) CO_TRY(co_await connection.FinishBody());
  if (!finish) co_return Status();
  CO_TRY_ASSIGN(http::ResponseHead answer, co_await connection.ReadHead());
  if (answer.status != 200) co_return Fail(Code::kUnknown, "HTTP {}", answer.status);
  co_return Status();
}

Task<Status> FinishStream(http::ClientConnection& connection) {
  CO_TRY(co_await connection.FinishBody());
  CO_TRY(co_await connection.ReadHead());
  co_return Status();
}

http::RequestHead MakeHead(std::string method, std::string target, http::Headers headers) {
  http::RequestHead head;
  head.method = std::move(method);
  head.target = std::move(target);
  head.headers = std::move(headers);
  if (!head.headers.Has("Host")) head.headers.Add("Host", "envd");
  return head;
}

}  // namespace

Fixture::Fixture() {
  signal(SIGPIPE, SIG_IGN);
  dir = std::filesystem::temp_directory_path() / ("envd_test_" + RandomHex(6));
  std::filesystem::create_directories(dir);
  settings.default_user = CurrentUser();
  settings.default_workdir = dir;
  settings.sandbox_id = "itestsandbox";
  settings.template_id = "base";
  settings.port = 0;
}

void Fixture::KillProcesses() {
  http::Headers token{{std::string(kTokenHeader), settings.access_token}};
  json::value list = Unary("process.Process/List", {}, token).Json();
  const json::value* processes = list.as_object().if_contains("processes");
  if (processes == nullptr) return;
  for (const json::value& process : processes->as_array())
    Unary("process.Process/SendSignal", {{"process", {{"pid", process.at("pid")}}}, {"signal", 9}},
          token);
}

Fixture::~Fixture() {
  if (daemon) {
    KillProcesses();
    auto done = std::make_shared<bool>(false);
    asio::co_spawn(loop, daemon->Stop(), [done](std::exception_ptr) { *done = true; });
    RunUntil(*done);
  }
  daemon.reset();
  std::filesystem::remove_all(dir);
}

void Fixture::Boot() {
  daemon = std::make_unique<Daemon>(loop.get_executor(), settings);
  Status started = daemon->Start();
  ASSERT_TRUE(started) << started.error().message();
  port = daemon->port();
}

void Fixture::RunUntil(const bool& done) {
  auto deadline = std::chrono::steady_clock::now() + 120s;
  while (!done && std::chrono::steady_clock::now() < deadline) {
    loop.restart();
    loop.run_one_for(100ms);
  }
  if (!done) throw std::runtime_error("the daemon did not answer in time");
}

void Fixture::Wait(std::chrono::milliseconds duration) {
  auto until = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < until) {
    loop.restart();
    loop.run_until(until);
  }
}

bool Fixture::Until(const std::function<bool()>& so) {
  auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!so()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    Wait(20ms);
  }
  return true;
}

std::unique_ptr<http::ClientConnection> Fixture::Connect() {
  auto connection =
      Await(http::ClientConnection::Connect("127.0.0.1:" + std::to_string(port), 30s));
  EXPECT_TRUE(connection);
  return std::move(*connection);
}

Reply Fixture::Http(std::string method, std::string target, http::Headers headers,
                    std::string body) {
  auto connection = Connect();
  auto reply = Await(FetchAll(*connection,
                              MakeHead(std::move(method), std::move(target), std::move(headers)),
                              std::move(body)));
  EXPECT_TRUE(reply) << (reply ? "" : reply.error().message());
  return reply ? std::move(*reply) : Reply();
}

Reply Fixture::Unary(const std::string& procedure, const json::object& request,
                     http::Headers headers) {
  headers.Add("Content-Type", "application/json");
  return Http("POST", "/" + procedure, std::move(headers), json::serialize(request));
}

Call Fixture::Stream(const std::string& procedure, const json::object& request,
                     http::Headers headers, bool finish) {
  headers.Add("Content-Type", "application/connect+json");
  auto connection = Connect();
  Status opened = Await(OpenStream(*connection, MakeHead("POST", "/" + procedure, headers),
                                   http::Envelope(json::serialize(request)), finish));
  EXPECT_TRUE(opened) << (opened ? "" : opened.error().message());
  return Call(*this, std::move(connection));
}

Outcome Fixture::Run(const json::object& request, http::Headers headers) {
  return Stream("process.Process/Start", request, std::move(headers)).Collect();
}

Outcome Fixture::Bash(const std::string& script, http::Headers headers) {
  return Run(BashRequest(script), std::move(headers));
}

void Fixture::WriteFile(const std::string& name, const std::string& content) {
  std::ofstream(Path(name), std::ios::binary) << content;
}

std::string Fixture::ReadBack(const std::string& name) {
  std::ifstream file(Path(name), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::optional<Message> Call::Next(std::chrono::milliseconds timeout) {
  auto complete = [&]() -> size_t {
    if (buffer_.size() < 5) return 0;
    auto byte = [&](size_t i) { return static_cast<uint8_t>(buffer_[i]); };
    size_t size =
        5 + (size_t{byte(1)} << 24 | size_t{byte(2)} << 16 | size_t{byte(3)} << 8 | byte(4));
    return buffer_.size() >= size ? size : 0;
  };
  while (complete() == 0) {
    auto more = fixture_.Await(WithDeadline(timeout, "reading", ReadSome(*connection_)));
    if (!more || more->empty()) return std::nullopt;
    buffer_ += *more;
  }
  size_t size = complete();
  Message message;
  message.flags = static_cast<uint8_t>(buffer_[0]);
  message.body = json::parse(std::string_view(buffer_).substr(5, size - 5)).as_object();
  buffer_.erase(0, size);
  return message;
}

Outcome Call::Collect() {
  Outcome outcome;
  while (auto message = Next(30s)) {
    if (message->last()) {
      if (auto* error = message->body.if_contains("error")) outcome.error = error->as_object();
      break;
    }
    const json::object& event = message->body.at("event").as_object();
    if (event.contains("start")) outcome.pid = event.at("start").at("pid").as_int64();
    if (event.contains("keepalive")) ++outcome.keepalives;
    if (event.contains("end")) outcome.end = event.at("end").as_object();
    if (!event.contains("data")) continue;
    for (const auto& item : event.at("data").as_object()) {
      std::string bytes = Base64Decode(item.value().as_string()).value_or("?");
      (item.key() == "stdout"   ? outcome.out
       : item.key() == "stderr" ? outcome.err
                                : outcome.pty) += bytes;
    }
  }
  return outcome;
}

void Call::Write(const json::object& message) {
  std::string envelope = http::Envelope(json::serialize(message));
  Status written = fixture_.Await(connection_->WriteBody(envelope));
  EXPECT_TRUE(written);
}

void Call::Finish() {
  Status finished = fixture_.Await(FinishStream(*connection_));
  EXPECT_TRUE(finished);
}

json::object BashRequest(const std::string& script) {
  return {{"process", {{"cmd", "/bin/bash"}, {"args", {"-c", script}}}}, {"stdin", false}};
}

std::string CurrentUser() { return Accounts::Current()->UserName(geteuid()); }

bool ProcessExists(int64_t pid) {
  // A zombie that nobody reaped yet does not run any more.
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  size_t close = text.rfind(')');
  return close != std::string::npos && text.substr(close + 2, 1) != "Z";
}

}  // namespace caisson::envd

#include "sdk/pty.h"

#include <boost/json.hpp>

#include "base/encoding.h"
#include "sdk/envd_call.h"

namespace caisson::sdk {
namespace {

namespace json = boost::json;

constexpr std::string_view kKeepalive = "30";  // seconds
constexpr std::chrono::milliseconds kOpenTimeout{30'000};

json::object ByTag(const std::string& tag) { return {{"process", json::object{{"tag", tag}}}}; }

json::object Encode(PtySize size) {
  return {{"size", json::object{{"cols", size.cols}, {"rows", size.rows}}}};
}

}  // namespace

Task<Status> Pty::Open(std::string method, std::string user, json::object message) {
  auto head =
      EnvdHead(*transport_, "POST", "/process.Process/" + method, "application/connect+json", user);
  head.headers.Set("Keepalive-Ping-Interval", kKeepalive);
  CO_TRY_ASSIGN(auto connection, co_await transport_->Connect());
  CO_TRY_ASSIGN(
      ProcessStream stream,
      co_await ProcessStream::Open(std::move(connection), std::move(head), std::move(message)));
  CO_TRY_ASSIGN(auto first, co_await stream.Next());
  if (!first || first->kind != ProcessEvent::Kind::kStarted)
    co_return Fail(Code::kDataLoss, "the sandbox did not say that the terminal is there");
  pid_ = first->pid;
  stream_.emplace(std::move(stream));
  co_return Status();
}

Task<Status> Pty::Start(PtyCommand command) {
  json::object env;
  for (const auto& [name, value] : command.env) env[name] = value;
  json::object process{{"cmd", command.argv.front()},
                       {"args", json::array(command.argv.begin() + 1, command.argv.end())},
                       {"envs", std::move(env)}};
  if (!command.cwd.empty()) process["cwd"] = command.cwd;
  json::object message{
      {"process", std::move(process)}, {"pty", Encode(command.size)}, {"tag", tag_}};
  Status begun = co_await WithDeadline(kOpenTimeout, "opening the terminal",
                                       Open("Start", command.user, std::move(message)));
  // It may have come up without our hearing of it.
  bool unsure = !begun && (begun.error().code() == Code::kUnavailable ||
                           begun.error().code() == Code::kDeadlineExceeded);
  if (unsure) (void)co_await Kill();
  co_return begun;
}

Task<Status> Pty::Follow() {
  co_return co_await WithDeadline(kOpenTimeout, "reaching the terminal",
                                  Open("Connect", "", ByTag(tag_)));
}

Task<Result<ProcessEvent>> Pty::Next() {
  if (!stream_) co_return Fail(Code::kFailedPrecondition, "nobody follows this terminal");
  CO_TRY_ASSIGN(auto event, co_await stream_->Next());
  if (!event) co_return Fail(Code::kUnavailable, "the terminal has ended");
  co_return std::move(*event);
}

Task<Status> Pty::Send(std::string bytes) {
  json::object message = ByTag(tag_);
  message["input"] = json::object{{"pty", Base64Encode(bytes)}};
  CO_TRY(co_await CallEnvd(transport_, "process.Process/SendInput", std::move(message)));
  co_return Status();
}

Task<Status> Pty::Resize(PtySize size) {
  json::object message = ByTag(tag_);
  message["pty"] = Encode(size);
  CO_TRY(co_await CallEnvd(transport_, "process.Process/Update", std::move(message)));
  co_return Status();
}

Task<Status> Pty::Kill() {
  json::object message = ByTag(tag_);
  message["signal"] = "SIGNAL_SIGKILL";
  message["tree"] = true;  // of our envd: with everything that it started
  CO_TRY(co_await CallEnvd(transport_, "process.Process/SendSignal", std::move(message)));
  co_return Status();
}

}  // namespace caisson::sdk

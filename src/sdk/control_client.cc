#include "sdk/control_client.h"

#include <boost/json.hpp>

#include "base/encoding.h"
#include "base/log.h"
#include "base/text.h"

namespace caisson::sdk {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr milliseconds kConnectTimeout{10'000};
constexpr size_t kMaxAnswer = 32 << 20;
constexpr int kMaxPages = 1'000;
constexpr std::string_view kEnvdPort = "49983";

std::string TextOf(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

json::object ToJson(const std::map<std::string, std::string>& map) {
  json::object out;
  for (const auto& [name, value] : map) out[name] = value;
  return out;
}

Result<RemoteSandbox> ReadSandbox(const json::value& value) {
  const json::object* object = value.if_object();
  RemoteSandbox sandbox;
  if (object) sandbox.id = TextOf(*object, "sandboxID");
  if (sandbox.id.empty())
    return Fail(Code::kDataLoss, "the sandbox server answered without the id of a sandbox");
  sandbox.template_id = TextOf(*object, "templateID");
  if (std::string state = TextOf(*object, "state"); !state.empty()) sandbox.state = state;
  sandbox.access_token = TextOf(*object, "envdAccessToken");
  sandbox.domain = TextOf(*object, "domain");
  if (auto time = ParseTime(TextOf(*object, "startedAt"))) sandbox.started_at = *time;
  if (auto time = ParseTime(TextOf(*object, "endAt"))) sandbox.ends_at = *time;
  const json::value* metadata = object->if_contains("metadata");
  if (metadata && metadata->is_object())
    for (const auto& [name, text] : metadata->get_object())
      if (text.is_string()) sandbox.metadata[name] = std::string(text.get_string());
  return sandbox;
}

// The error of an answer. Whatever may pass is kUnavailable, so that callers need to know one code.
Error FromAnswer(const http::Response& response) {
  boost::system::error_code ec;
  json::value parsed = json::parse(response.body, ec);
  std::string message;
  if (!ec && parsed.is_object()) message = TextOf(parsed.as_object(), "message");
  if (message.empty()) message = std::string(http::ReasonPhrase(response.status));
  message = fmt::format("the sandbox server answered {}: {}", response.status, ToUtf8(message));
  switch (response.status) {
    case 400:
    case 422:
      return Error(Code::kInvalidArgument, message);
    case 401:
    case 403:
      return Error(Code::kUnauthenticated, message);
    case 404:
      return Error(Code::kNotFound, message);
    case 409:
      return Error(Code::kFailedPrecondition, message);
    case 429:
      return Error(Code::kResourceExhausted, message);
    case 504:
      return Error(Code::kDeadlineExceeded, message);
    default:
      return Error(response.status >= 500 ? Code::kUnavailable : Code::kUnknown, message);
  }
}

Task<Result<http::Response>> Fetch(Endpoint endpoint, http::RequestHead head, std::string body) {
  auto connection = co_await endpoint.Connect(kConnectTimeout);
  if (!connection)
    co_return Fail(Code::kUnavailable, "the sandbox server at {} cannot be reached: {}",
                   endpoint.url, connection.error().message());
  auto response = co_await (*connection)->Fetch(std::move(head), std::move(body), kMaxAnswer);
  // Whatever breaks a connection may not do so the next time.
  if (!response && response.error().code() != Code::kCanceled)
    co_return Fail(Code::kUnavailable, "the sandbox server at {} did not answer: {}", endpoint.url,
                   response.error().message());
  co_return response;
}

// Every request names the sandbox twice, by host where the server has names for sandboxes, and by
// headers, which any server of this kind takes.
class RemoteTransport final : public Transport {
 public:
  RemoteTransport(Endpoint endpoint, const RemoteSandbox& sandbox)
      : endpoint_(std::move(endpoint)),
        headers_{{"Host", endpoint_.host_port},
                 {"E2b-Sandbox-Id", sandbox.id},
                 {"E2b-Sandbox-Port", std::string(kEnvdPort)}} {
    if (!sandbox.access_token.empty()) headers_.Set("X-Access-Token", sandbox.access_token);
  }

  Task<Result<std::unique_ptr<http::ClientConnection>>> Connect() override {
    auto connection = co_await endpoint_.Connect(kConnectTimeout);
    if (!connection)
      co_return Fail(Code::kUnavailable, "the sandbox cannot be reached: {}",
                     connection.error().message());
    co_return connection;
  }
  http::Headers RequestHeaders() const override { return headers_; }

 private:
  Endpoint endpoint_;
  http::Headers headers_;
};

}  // namespace

ControlClient::ControlClient(ControlOptions options)
    : options_(std::move(options)),
      keys_(std::exchange(options_.api_key, "")),
      breaker_(options_.breaker_failures, options_.breaker_open) {}

Task<Result<ControlClient::Answer>> ControlClient::Attempt(http::RequestHead& head,
                                                           const std::string& body,
                                                           RetryHint& hint) {
  if (keys_.empty()) co_return co_await Ask(head, body, hint);
  for (size_t tried = 1;; ++tried) {
    size_t number = keys_.CurrentNumber();
    head.headers.Set("X-API-KEY", keys_.Current());
    auto answer = co_await Ask(head, body, hint);
    bool refused = !answer && answer.error().code() == Code::kUnauthenticated;
    keys_.Count(number, refused);
    if (!refused || tried >= keys_.size()) co_return answer;
  }
}

Task<Result<ControlClient::Answer>> ControlClient::Ask(const http::RequestHead& head,
                                                       const std::string& body, RetryHint& hint) {
  auto response = co_await WithDeadline(options_.timeout, "the call to the sandbox server",
                                        Fetch(options_.endpoint, head, body));
  CO_TRY(response);
  if (auto seconds = ParseInt<int64_t>(Trim(response->headers.Value("Retry-After"))))
    hint.wait = std::chrono::seconds(*seconds);
  if (response->status < 200 || response->status > 299)
    co_return tl::unexpected(FromAnswer(*response));
  Answer answer{.body = nullptr,
                .next_token = std::string(response->headers.Value("X-Next-Token"))};
  if (response->body.empty()) co_return answer;
  boost::system::error_code ec;
  answer.body = json::parse(response->body, ec);
  if (ec) co_return Fail(Code::kDataLoss, "the answer of {} is not JSON", options_.endpoint.url);
  co_return answer;
}

Task<Result<ControlClient::Answer>> ControlClient::Call(std::string method, std::string target,
                                                        std::optional<json::object> body,
                                                        std::string idempotency_key) {
  http::RequestHead head{.method = std::move(method), .target = std::move(target)};
  std::string doing = fmt::format("{} {}", head.method, head.Path());
  head.headers.Set("Host", options_.endpoint.host_port);
  head.headers.Set("User-Agent", "caisson/" CAISSON_VERSION);
  if (!idempotency_key.empty()) head.headers.Set("Idempotency-Key", idempotency_key);
  std::string text = body ? json::serialize(*body) : "";
  if (body) head.headers.Set("Content-Type", "application/json");
  CO_TRY(breaker_.Enter("the sandbox server"));
  auto begun = std::chrono::steady_clock::now();
  int attempts = 0;
  auto answer = co_await Retry<Answer>(options_.retry, doing, [&](RetryHint& hint) {
    ++attempts;
    return Attempt(head, text, hint);
  });
  auto took = std::chrono::steady_clock::now() - begun;
  LogInfo("the sandbox server was called",
          {{"call", doing},
           {"outcome", answer ? std::string_view("ok") : CodeName(answer.error().code())},
           {"attempts", attempts},
           {"ms", std::chrono::duration_cast<milliseconds>(took).count()}});
  breaker_.Leave(answer ? Status() : tl::unexpected(answer.error()));
  if (!answer && answer.error().code() == Code::kDataLoss)
    co_return Fail(Code::kUnavailable, "{}", answer.error().message());
  co_return answer;
}

Task<Result<RemoteSandbox>> ControlClient::Create(NewSandbox request) {
  json::object body{{"templateID", request.template_id},
                    {"timeout", request.timeout.count()},
                    {"metadata", ToJson(request.metadata)},
                    {"envVars", ToJson(request.env)},
                    {"secure", true},
                    {"allow_internet_access", request.allow_internet}};
  if (request.sleeps) {
    body["autoPause"] = true;
    body["autoResume"] = json::object{{"enabled", true}};
  }
  CO_TRY_ASSIGN(Answer answer, co_await Call("POST", "/sandboxes", std::move(body),
                                             std::move(request.idempotency_key)));
  CO_TRY_ASSIGN(RemoteSandbox sandbox, ReadSandbox(answer.body));
  sandbox.metadata = std::move(request.metadata);
  // The answer to a create tells no times.
  sandbox.started_at = Now();
  sandbox.ends_at = sandbox.started_at + request.timeout;
  co_return sandbox;
}

Task<Result<RemoteSandbox>> ControlClient::Get(std::string id) {
  CO_TRY_ASSIGN(Answer answer, co_await Call("GET", "/sandboxes/" + PercentEncode(id)));
  co_return ReadSandbox(answer.body);
}

Task<Result<std::vector<RemoteSandbox>>> ControlClient::List(
    std::map<std::string, std::string> metadata) {
  // Encoded as the SDKs do it: each part, the form, the query value.
  std::string form;
  for (const auto& [name, value] : metadata) {
    if (!form.empty()) form += '&';
    form += PercentEncode(PercentEncode(name)) + '=' + PercentEncode(PercentEncode(value));
  }
  std::string base = "/v2/sandboxes?state=running%2Cpaused&limit=100";
  if (!form.empty()) base += "&metadata=" + PercentEncode(form);
  std::vector<RemoteSandbox> list;
  std::string token;
  for (int page = 0; page < kMaxPages; ++page) {
    std::string target = token.empty() ? base : base + "&nextToken=" + PercentEncode(token);
    CO_TRY_ASSIGN(Answer answer, co_await Call("GET", std::move(target)));
    if (!answer.body.is_array())
      co_return Fail(Code::kUnavailable, "the sandbox server answered without a list");
    for (const json::value& value : answer.body.get_array()) {
      CO_TRY_ASSIGN(RemoteSandbox sandbox, ReadSandbox(value));
      list.push_back(std::move(sandbox));
    }
    token = answer.next_token;
    if (token.empty()) co_return list;
  }
  co_return Fail(Code::kUnavailable, "the sandbox server's list does not end");
}

Task<Status> ControlClient::Kill(std::string id) {
  CO_TRY(co_await Call("DELETE", "/sandboxes/" + PercentEncode(id)));
  co_return Status();
}

Task<Result<std::string>> ControlClient::Snapshot(std::string id, std::string name) {
  std::string target = fmt::format("/sandboxes/{}/snapshots", PercentEncode(id));
  CO_TRY_ASSIGN(Answer answer,
                co_await Call("POST", std::move(target), json::object{{"name", name}}, name));
  const json::value* made =
      answer.body.is_object() ? answer.body.get_object().if_contains("snapshotID") : nullptr;
  if (!made || !made->is_string())
    co_return Fail(Code::kUnavailable, "the sandbox server answered without the snapshot's id");
  co_return std::string(made->get_string());
}

Task<Status> ControlClient::DeleteTemplate(std::string id) {
  CO_TRY(co_await Call("DELETE", "/templates/" + PercentEncode(id)));
  co_return Status();
}

Task<Status> ControlClient::Pause(std::string id) {
  CO_TRY(
      co_await Call("POST", fmt::format("/sandboxes/{}/pause", PercentEncode(id)), json::object()));
  co_return Status();
}

Task<Result<RemoteSandbox>> ControlClient::Connect(std::string id, std::chrono::seconds timeout) {
  CO_TRY_ASSIGN(Answer answer,
                co_await Call("POST", fmt::format("/sandboxes/{}/connect", PercentEncode(id)),
                              json::object{{"timeout", timeout.count()}}));
  co_return ReadSandbox(answer.body);
}

Task<Status> ControlClient::SetTimeout(std::string id, std::chrono::seconds timeout) {
  CO_TRY(co_await Call("POST", fmt::format("/sandboxes/{}/timeout", PercentEncode(id)),
                       json::object{{"timeout", timeout.count()}}));
  co_return Status();
}

EnvdClient ControlClient::Envd(const RemoteSandbox& sandbox) const {
  Endpoint endpoint = options_.endpoint;
  // A server whose API has a name of its own has other names for sandboxes; one that has not serves
  // both under the same.
  if (std::string host = endpoint.Host(); host.starts_with("api.")) {
    std::string domain = sandbox.domain.empty() ? host.substr(4) : sandbox.domain;
    std::string port = endpoint.host_port.substr(host.size());
    endpoint.host_port = fmt::format("{}-{}.{}{}", kEnvdPort, sandbox.id, domain, port);
  }
  return EnvdClient(std::make_unique<RemoteTransport>(std::move(endpoint), sandbox));
}

std::string ControlClient::Host(const std::string& id, uint16_t port) const {
  std::string host = options_.endpoint.Host();
  if (host.starts_with("api.")) host = host.substr(4);
  return fmt::format("{}-{}.{}", port, id, host);
}

}  // namespace caisson::sdk

#include "cli/api_client.h"

#include <boost/json.hpp>

#include "base/encoding.h"
#include "base/text.h"
#include "sdk/control_client.h"

namespace caisson::cli {
namespace {

constexpr std::chrono::milliseconds kConnectTimeout{5'000};
constexpr size_t kMaxAnswerBytes = 64 << 20;
constexpr std::string_view kEnvdPort = "49983";

// The message of an error answer: of /api/v1, of E2B's routes or of envd.
std::string MessageOf(const http::Response& response) {
  boost::system::error_code ec;
  boost::json::value parsed = boost::json::parse(response.body, ec);
  if (!ec && parsed.is_object())
    if (auto* error = parsed.as_object().if_contains("error"); error && error->is_object())
      parsed = boost::json::value(*error);
  if (!ec && parsed.is_object())
    if (const auto* message = parsed.as_object().if_contains("message");
        message && message->is_string())
      return std::string(message->as_string());
  return std::string(Trim(response.body.substr(0, 500)));
}

std::string TextOf(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->as_string()) : std::string();
}

Error FromAnswer(const http::Response& response) {
  std::string message = MessageOf(response);
  switch (response.status) {
    case 401:
      return Error(
          Code::kUnauthenticated,
          fmt::format("the server does not accept this API key: {} (set CAISSON_API_KEY to "
                      "the key that the server printed at its start)",
                      message));
    case 404:
      return Error(Code::kNotFound, message);
    default:
      return Error(Code::kUnknown, fmt::format("the server answered {} {}: {}", response.status,
                                               http::ReasonPhrase(response.status), message));
  }
}

}  // namespace

Result<ApiClient> ApiClient::Make(const ServerAccess& server) {
  ApiClient client;
  TRY_ASSIGN(client.endpoint_, sdk::Endpoint::Parse(server.url, server.ca_file));
  client.api_key_ = server.api_key;
  return client;
}

Task<Result<std::unique_ptr<http::ClientConnection>>> ApiClient::Connect() {
  auto connection = co_await endpoint_.Connect(kConnectTimeout);
  if (!connection)
    co_return Fail(Code::kUnavailable,
                   "the server at {} cannot be reached: {} (start one with `caisson serve`, or say "
                   "where it is with --url)",
                   url(), connection.error().message());
  co_return connection;
}

Task<Result<http::Response>> ApiClient::Fetch(http::RequestHead head, std::string body) {
  auto connection = std::move(idle_);
  if (!connection) {
    CO_TRY_ASSIGN(connection, co_await Connect());
  }
  auto response = co_await connection->Fetch(std::move(head), std::move(body), kMaxAnswerBytes);
  if (response && connection->Reusable()) idle_ = std::move(connection);
  co_return response;
}

Task<Result<http::Response>> ApiClient::Send(std::string method, std::string path,
                                             std::string_view type, std::string body) {
  if (api_key_.empty())
    co_return Fail(Code::kUnauthenticated,
                   "there is no API key: set CAISSON_API_KEY to the key that the server printed at "
                   "its start (it is also in the file api-key of its data directory)");
  http::RequestHead head{.method = std::move(method), .target = std::move(path)};
  head.headers.Set("Host", endpoint_.host_port);
  head.headers.Set("X-API-KEY", api_key_);
  head.headers.Set("User-Agent", "caisson/" CAISSON_VERSION);
  if (!type.empty()) head.headers.Set("Content-Type", type);
  CO_TRY_ASSIGN(auto response, co_await Fetch(std::move(head), std::move(body)));
  if (response.status < 200 || response.status > 299)
    co_return tl::unexpected(FromAnswer(response));
  co_return response;
}

Task<Result<std::string>> ApiClient::Get(std::string path) {
  CO_TRY_ASSIGN(auto response, co_await Send("GET", std::move(path), "", ""));
  co_return std::move(response.body);
}

Task<Status> ApiClient::Put(std::string path, std::string content) {
  CO_TRY(co_await Send("PUT", std::move(path), "application/octet-stream", std::move(content)));
  co_return Status();
}

Task<Result<ApiClient::Answer>> ApiClient::Call(std::string method, std::string path,
                                                std::optional<boost::json::value> body) {
  CO_TRY_ASSIGN(auto response,
                co_await Send(std::move(method), std::move(path), body ? "application/json" : "",
                              body ? boost::json::serialize(*body) : ""));
  Answer answer{.body = nullptr, .next_token = std::string(response.headers.Value("X-Next-Token"))};
  if (response.body.empty()) co_return answer;
  boost::system::error_code ec;
  answer.body = boost::json::parse(response.body, ec);
  if (ec) co_return Fail(Code::kDataLoss, "the answer of {} is not JSON: is it Caisson?", url());
  co_return answer;
}

Task<Status> ApiClient::Stream(std::string path, http::Headers headers,
                               std::function<bool(std::string_view)> take) {
  CO_TRY_ASSIGN(auto connection, co_await Connect());
  http::RequestHead head{.method = "GET", .target = std::move(path), .headers = std::move(headers)};
  head.headers.Set("Host", endpoint_.host_port);
  head.headers.Set("X-API-KEY", api_key_);
  head.headers.Set("User-Agent", "caisson/" CAISSON_VERSION);
  auto sent = co_await connection->SendHead(std::move(head), 0);
  auto begun = co_await connection->ReadHead();
  if (!sent || !begun) co_return Fail(Code::kUnavailable, "the server did not answer");
  http::Response refused;
  refused.status = begun->status;
  std::vector<char> buffer(64 << 10);
  for (;;) {
    auto size = co_await connection->ReadBody(buffer);
    if (refused.status == 200) {
      if (!size || *size == 0) co_return Fail(Code::kUnavailable, "the server ended the stream");
      if (!take({buffer.data(), *size})) co_return Status();
      continue;
    }
    if (size && *size > 0 && refused.body.size() < kMaxAnswerBytes) {
      refused.body.append(buffer.data(), *size);
      continue;
    }
    co_return tl::unexpected(FromAnswer(refused));
  }
}

http::RequestHead ApiClient::EnvdHead(const boost::json::object& sandbox, std::string path,
                                      std::string_view content_type,
                                      const std::string& user) const {
  http::RequestHead head{.method = "POST", .target = std::move(path)};
  head.headers.Set("Host", endpoint_.host_port);
  head.headers.Set("E2b-Sandbox-Id", TextOf(sandbox, "sandboxID"));
  head.headers.Set("E2b-Sandbox-Port", kEnvdPort);
  head.headers.Set("Content-Type", content_type);
  head.headers.Set("Connect-Protocol-Version", "1");
  head.headers.Set("User-Agent", "caisson/" CAISSON_VERSION);
  if (std::string token = TextOf(sandbox, "envdAccessToken"); !token.empty())
    head.headers.Set("X-Access-Token", token);
  if (!user.empty()) head.headers.Set("Authorization", "Basic " + Base64Encode(user + ":"));
  return head;
}

Task<Result<ApiClient::EnvdRequest>> ApiClient::OpenEnvd(boost::json::object sandbox,
                                                         std::string path, std::string content_type,
                                                         std::string user) {
  EnvdRequest request;
  request.head = EnvdHead(sandbox, std::move(path), content_type, user);
  CO_TRY_ASSIGN(request.connection, co_await Connect());
  co_return request;
}

Task<Status> ApiClient::CallEnvd(boost::json::object sandbox, std::string path,
                                 boost::json::object message) {
  http::RequestHead head = EnvdHead(sandbox, std::move(path), "application/json", "");
  CO_TRY_ASSIGN(auto response, co_await Fetch(std::move(head), boost::json::serialize(message)));
  if (response.status != 200) co_return tl::unexpected(FromAnswer(response));
  co_return Status();
}

sdk::EnvdClient ApiClient::Envd(const boost::json::object& sandbox) const {
  return sdk::ControlClient({.endpoint = endpoint_})
      .Envd({.id = TextOf(sandbox, "sandboxID"),
             .access_token = TextOf(sandbox, "envdAccessToken"),
             .domain = TextOf(sandbox, "domain")});
}

}  // namespace caisson::cli

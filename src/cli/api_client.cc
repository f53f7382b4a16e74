#include "cli/api_client.h"

#include "base/encoding.h"
#include "base/text.h"
#include "http/tls.h"

namespace caisson::cli {
namespace {

constexpr std::chrono::milliseconds kConnectTimeout{5'000};
constexpr size_t kMaxAnswerBytes = 64 << 20;
constexpr std::string_view kEnvdPort = "49983";

// The message of an error answer, in the server's shape or envd's.
std::string MessageOf(const http::Response& response) {
  boost::system::error_code ec;
  boost::json::value parsed = boost::json::parse(response.body, ec);
  if (!ec && parsed.is_object())
    if (const auto* message = parsed.as_object().if_contains("message");
        message && message->is_string())
      return std::string(message->as_string());
  return std::string(Trim(response.body.substr(0, 500)));
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

Result<ApiClient> ApiClient::Make(std::string url, std::string api_key, std::string ca_file) {
  while (url.ends_with('/')) url.pop_back();
  ApiClient client;
  client.url_ = url;
  client.api_key_ = std::move(api_key);
  client.ca_file_ = std::move(ca_file);
  client.tls_ = url.starts_with("https://");
  size_t scheme = url.find("://");
  if (scheme != std::string::npos) client.host_port_ = url.substr(scheme + 3);
  if ((!client.tls_ && !url.starts_with("http://")) || client.host_port_.empty() ||
      client.host_port_.find('/') != std::string::npos)
    return Fail(Code::kInvalidArgument,
                "'{}' is not the address of a server, for example http://127.0.0.1:8000", url);
  bool has_port =
      client.host_port_.find(':', client.host_port_.rfind(']') + 1) != std::string::npos;
  if (!has_port) client.host_port_ += client.tls_ ? ":443" : ":80";
  return client;
}

Task<Result<std::unique_ptr<http::ClientConnection>>> ApiClient::Connect() {
  auto connection = tls_ ? co_await http::ConnectTls(host_port_, ca_file_, kConnectTimeout)
                         : co_await http::ClientConnection::Connect(host_port_, kConnectTimeout);
  if (!connection)
    co_return Fail(Code::kUnavailable,
                   "the server at {} cannot be reached: {} (start one with `caisson serve`, or say "
                   "where it is with --url)",
                   url_, connection.error().message());
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

Task<Result<ApiClient::Answer>> ApiClient::Call(std::string method, std::string path,
                                                std::optional<boost::json::value> body) {
  if (api_key_.empty())
    co_return Fail(Code::kUnauthenticated,
                   "there is no API key: set CAISSON_API_KEY to the key that the server printed at "
                   "its start (it is also in the file api-key of its data directory)");
  http::RequestHead head{.method = std::move(method), .target = std::move(path)};
  head.headers.Set("Host", host_port_);
  head.headers.Set("X-API-KEY", api_key_);
  head.headers.Set("User-Agent", "caisson/" CAISSON_VERSION);
  std::string text;
  if (body) {
    head.headers.Set("Content-Type", "application/json");
    text = boost::json::serialize(*body);
  }
  CO_TRY_ASSIGN(auto response, co_await Fetch(std::move(head), std::move(text)));
  if (response.status < 200 || response.status > 299)
    co_return tl::unexpected(FromAnswer(response));
  Answer answer{.body = nullptr, .next_token = std::string(response.headers.Value("X-Next-Token"))};
  if (response.body.empty()) co_return answer;
  boost::system::error_code ec;
  answer.body = boost::json::parse(response.body, ec);
  if (ec) co_return Fail(Code::kDataLoss, "the answer of {} is not JSON: is it Caisson?", url_);
  co_return answer;
}

http::RequestHead ApiClient::EnvdHead(const boost::json::object& sandbox, std::string path,
                                      std::string_view content_type,
                                      const std::string& user) const {
  auto text = [&sandbox](std::string_view name) {
    const auto* value = sandbox.if_contains(name);
    return value && value->is_string() ? std::string(value->as_string()) : std::string();
  };
  http::RequestHead head{.method = "POST", .target = std::move(path)};
  head.headers.Set("Host", host_port_);
  head.headers.Set("E2b-Sandbox-Id", text("sandboxID"));
  head.headers.Set("E2b-Sandbox-Port", kEnvdPort);
  head.headers.Set("Content-Type", content_type);
  head.headers.Set("Connect-Protocol-Version", "1");
  head.headers.Set("User-Agent", "caisson/" CAISSON_VERSION);
  if (std::string token = text("envdAccessToken"); !token.empty())
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

}  // namespace caisson::cli

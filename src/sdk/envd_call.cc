#include "sdk/envd_call.h"

#include <boost/json.hpp>

#include "base/encoding.h"
#include "sdk/process_stream.h"

namespace caisson::sdk {
namespace {

namespace json = boost::json;

constexpr std::chrono::milliseconds kCallTimeout{60'000};
constexpr size_t kMaxAnswer = 32 << 20;

Task<Result<http::Response>> Fetch(std::shared_ptr<Transport> transport, http::RequestHead head,
                                   std::string body) {
  CO_TRY_ASSIGN(auto connection, co_await transport->Connect());
  co_return co_await connection->Fetch(std::move(head), std::move(body), kMaxAnswer);
}

}  // namespace

http::RequestHead EnvdHead(const Transport& transport, std::string method, std::string target,
                           std::string_view content_type, const std::string& user) {
  http::RequestHead head{.method = std::move(method),
                         .target = std::move(target),
                         .headers = transport.RequestHeaders()};
  if (!content_type.empty()) head.headers.Set("Content-Type", content_type);
  head.headers.Set("Connect-Protocol-Version", "1");
  head.headers.Set("User-Agent", "caisson/" CAISSON_VERSION);
  if (!user.empty()) head.headers.Set("Authorization", "Basic " + Base64Encode(user + ":"));
  return head;
}

Task<Result<json::object>> CallEnvd(std::shared_ptr<Transport> transport, std::string procedure,
                                    json::object message, std::string user) {
  http::RequestHead head = EnvdHead(*transport, "POST", "/" + procedure, "application/json", user);
  CO_TRY_ASSIGN(http::Response response,
                co_await WithDeadline(kCallTimeout, "asking the sandbox",
                                      Fetch(transport, std::move(head), json::serialize(message))));
  if (response.status != 200)
    co_return tl::unexpected(ErrorOfAnswer(response.status, response.body));
  boost::system::error_code ec;
  json::value parsed = json::parse(response.body, ec);
  if (ec || !parsed.is_object())
    co_return Fail(Code::kDataLoss, "the sandbox answered with something that is not JSON");
  co_return std::move(parsed.as_object());
}

}  // namespace caisson::sdk

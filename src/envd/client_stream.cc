#include "envd/client_stream.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "http/connect_rpc.h"

namespace caisson::envd {
namespace {

constexpr std::string_view kStreamType = "application/connect+json";
constexpr uint8_t kEndStream = 2;

}  // namespace

Task<Result<std::optional<boost::json::object>>> ReadClientMessage(http::Exchange& exchange,
                                                                   size_t max_bytes) {
  CO_TRY_ASSIGN(auto envelope, co_await http::ReadEnvelope(exchange, max_bytes));
  if (!envelope || envelope->flags == kEndStream)
    co_return std::nullopt;  // not asked for, harmless
  if (envelope->flags != 0)
    co_return Fail(Code::kInvalidArgument, "unknown flags on the request message");
  if (envelope->payload.empty()) co_return boost::json::object();
  boost::system::error_code ec;
  boost::json::value value = boost::json::parse(envelope->payload, ec);
  if (ec || !value.is_object())
    co_return Fail(Code::kInvalidArgument, "the message is not a JSON object");
  co_return std::move(value.get_object());
}

Task<void> AnswerClientStream(http::Exchange& exchange, Status result) {
  boost::json::object end;
  if (!result) {
    end["error"] = {{"code", std::string(CodeName(result.error().code()))},
                    {"message", result.error().message()}};
  }
  std::string answer = result ? http::Envelope("{}") : std::string();
  answer += http::Envelope(boost::json::serialize(end), kEndStream);
  http::Response response;
  response.headers.Set("Content-Type", kStreamType);
  response.body = std::move(answer);
  (void)co_await exchange.Send(std::move(response));
}

}  // namespace caisson::envd

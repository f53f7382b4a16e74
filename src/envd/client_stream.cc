#include "envd/client_stream.h"

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "http/connect_rpc.h"

namespace caisson::envd {
namespace {

constexpr std::string_view kStreamType = "application/connect+json";
constexpr uint8_t kEndStream = 2;

// Fills `out`. False when the request ends before its first byte.
Task<Result<bool>> ReadExactly(http::Exchange& exchange, std::span<char> out) {
  for (size_t filled = 0; filled < out.size();) {
    CO_TRY_ASSIGN(size_t size, co_await exchange.Read(out.subspan(filled)));
    if (size == 0 && filled == 0) co_return false;
    if (size == 0) co_return Fail(Code::kInvalidArgument, "the last message is cut off");
    filled += size;
  }
  co_return true;
}

}  // namespace

Task<Result<std::optional<boost::json::object>>> ReadEnvelope(http::Exchange& exchange,
                                                              size_t max_bytes) {
  std::array<char, 5> head;
  CO_TRY_ASSIGN(bool present, co_await ReadExactly(exchange, head));
  if (!present) co_return std::nullopt;
  auto byte = [&](size_t i) { return static_cast<uint8_t>(head[i]); };
  if (byte(0) == kEndStream) co_return std::nullopt;  // not asked for, but harmless
  if (byte(0) != 0)
    co_return Fail(Code::kInvalidArgument,
                   "the message has unknown flags; compression is not "
                   "supported");
  size_t size = size_t{byte(1)} << 24 | size_t{byte(2)} << 16 | size_t{byte(3)} << 8 | byte(4);
  if (size > max_bytes)
    co_return Fail(Code::kResourceExhausted, "the message is larger than {} bytes", max_bytes);
  std::string payload(size, '\0');
  CO_TRY_ASSIGN(bool complete, co_await ReadExactly(exchange, payload));
  if (!complete && size > 0) co_return Fail(Code::kInvalidArgument, "the last message is cut off");
  boost::system::error_code ec;
  boost::json::value value = boost::json::parse(size == 0 ? "{}" : payload, ec);
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

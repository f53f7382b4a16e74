#include "http/connect_rpc.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/system/system_error.hpp>

#include "base/log.h"
#include "base/text.h"

namespace caisson::http {
namespace {

constexpr std::string_view kUnaryType = "application/json";
constexpr std::string_view kStreamType = "application/connect+json";
constexpr size_t kMaxJsonDepth = 32;
constexpr size_t kEnvelopeHead = 5;
constexpr uint8_t kCompressed = 1;
constexpr uint8_t kEndStream = 2;

boost::json::object ErrorJson(const Error& error) {
  return {{"code", std::string(CodeName(error.code()))}, {"message", error.message()}};
}

// Method, media type and version; a refusal is an HTTP answer, as Connect asks.
std::optional<Response> CheckProtocol(const RequestHead& request, std::string_view media_type) {
  if (request.method != "POST") {
    Response response = Response::Text(405, "Remote procedures are called with POST.\n");
    response.headers.Add("Allow", "POST");
    return response;
  }
  std::string_view type = request.headers.Value("Content-Type");
  if (!EqualsIgnoreCase(Trim(type.substr(0, type.find(';'))), media_type)) {
    Response response = Response::Text(415, fmt::format("Expected {}.\n", media_type));
    response.headers.Add("Accept-Post", media_type);
    return response;
  }
  return std::nullopt;
}

Status CheckHeaders(const RequestHead& request, std::string_view encoding_header) {
  if (auto version = request.headers.Get("Connect-Protocol-Version"); version && *version != "1")
    return Fail(Code::kInvalidArgument, "Connect-Protocol-Version must be \"1\"");
  std::string_view encoding = request.headers.Value(encoding_header);
  if (!encoding.empty() && !EqualsIgnoreCase(encoding, "identity"))
    return Fail(Code::kUnimplemented, "the compression \"{}\" is not supported", encoding);
  return {};
}

Result<boost::json::object> ParseObject(std::string_view text) {
  if (Trim(text).empty()) return boost::json::object();
  boost::json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  boost::system::error_code ec;
  boost::json::value value = boost::json::parse({text.data(), text.size()}, ec, {}, options);
  if (ec) return Fail(Code::kInvalidArgument, "the request is not valid JSON: {}", ec.message());
  if (!value.is_object()) return Fail(Code::kInvalidArgument, "the request is not a JSON object");
  return std::move(value.get_object());
}

Error TooLarge(size_t max_bytes) {
  return Error(Code::kResourceExhausted,
               fmt::format("the request message is larger than {} bytes", max_bytes));
}

// Turns what a method throws into an error; cancellation goes on its way.
Error FromException(const Exchange& exchange) {
  std::string what = "unknown exception";
  try {
    throw;
  } catch (const boost::system::system_error& e) {
    if (e.code() == asio::error::operation_aborted) throw;
    what = e.what();
  } catch (const std::exception& e) {
    what = e.what();
  }
  LogError("a remote procedure failed", {{"request_id", exchange.request_id()},
                                         {"path", exchange.request().Path()},
                                         {"error", what}});
  return Error(Code::kInternal,
               fmt::format("the procedure failed (request {})", exchange.request_id()));
}

Task<Result<boost::json::object>> CallUnary(Exchange& exchange, const UnaryMethod& method,
                                            size_t max_request_bytes) {
  CO_TRY(CheckHeaders(exchange.request(), "Content-Encoding"));
  auto body = co_await exchange.ReadAll(max_request_bytes);
  if (!body && body.error().code() == Code::kOutOfRange)
    co_return tl::unexpected(TooLarge(max_request_bytes));
  CO_TRY(body);
  CO_TRY_ASSIGN(boost::json::object request, ParseObject(*body));
  try {
    co_return co_await method(exchange, std::move(request));
  } catch (...) {
    co_return tl::unexpected(FromException(exchange));
  }
}

Task<Result<boost::json::object>> ReadMessage(Exchange& exchange, size_t max_bytes) {
  CO_TRY(CheckHeaders(exchange.request(), "Connect-Content-Encoding"));
  CO_TRY_ASSIGN(auto envelope, co_await ReadEnvelope(exchange, max_bytes));
  if (!envelope) co_return Fail(Code::kInvalidArgument, "the request message is missing");
  if (envelope->flags != 0)
    co_return Fail(Code::kInvalidArgument, "unknown flags on the request message");
  co_return ParseObject(envelope->payload);
}

Task<Status> CallStream(MessageStream& stream, const StreamMethod& method,
                        size_t max_request_bytes) {
  CO_TRY_ASSIGN(auto request, co_await ReadMessage(stream.exchange(), max_request_bytes));
  try {
    co_return co_await method(stream, std::move(request));
  } catch (...) {
    co_return tl::unexpected(FromException(stream.exchange()));
  }
}

}  // namespace

std::string Envelope(std::string_view payload, uint8_t flags) {
  auto size = static_cast<uint32_t>(payload.size());
  std::string out;
  out.reserve(kEnvelopeHead + payload.size());
  out += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(size >> shift);
  out += payload;
  return out;
}

Task<Result<std::optional<ReceivedEnvelope>>> ReadEnvelope(Exchange& exchange, size_t max_bytes) {
  // SECURITY: memory is taken as bytes arrive, not as the length promises them.
  constexpr size_t kPiece = 64 << 10;
  std::string data;
  size_t size = kEnvelopeHead;
  ReceivedEnvelope envelope;
  for (bool head_done = false;;) {
    size_t filled = data.size();
    data.resize(std::min(size, filled + kPiece));
    while (filled < data.size()) {
      CO_TRY_ASSIGN(size_t n, co_await exchange.Read(std::span(data).subspan(filled)));
      if (n == 0 && filled == 0 && !head_done) co_return std::nullopt;
      if (n == 0) co_return Fail(Code::kInvalidArgument, "the request message is cut off");
      filled += n;
    }
    if (filled < size) continue;
    if (head_done) break;
    auto byte = [&](size_t i) { return static_cast<uint8_t>(data[i]); };
    envelope.flags = byte(0);
    if (envelope.flags & kCompressed)
      co_return Fail(Code::kInvalidArgument, "compressed messages were not agreed on");
    size = size_t{byte(1)} << 24 | size_t{byte(2)} << 16 | size_t{byte(3)} << 8 | byte(4);
    if (size > max_bytes) co_return tl::unexpected(TooLarge(max_bytes));
    head_done = true;
    data.clear();
  }
  envelope.payload = std::move(data);
  co_return envelope;
}

std::optional<std::chrono::milliseconds> ConnectTimeout(const RequestHead& request) {
  constexpr size_t kMaxDigits = 10;  // as the protocol says
  std::string_view text = request.headers.Value("Connect-Timeout-Ms");
  auto ms = text.size() <= kMaxDigits ? ParseInt<int64_t>(text) : std::nullopt;
  if (!ms || *ms < 0) return std::nullopt;
  return std::chrono::milliseconds(*ms);
}

Task<void> ServeUnary(Exchange& exchange, const UnaryMethod& method, size_t max_request_bytes,
                      Headers more) {
  if (auto refusal = CheckProtocol(exchange.request(), kUnaryType)) {
    (void)co_await exchange.Send(std::move(*refusal));
    co_return;
  }
  auto result = co_await CallUnary(exchange, method, max_request_bytes);
  // A failed write means that the client is gone; nobody is left to tell.
  if (result) {
    Response response = Response::Json(200, *result);
    for (const auto& [name, value] : more) response.headers.Add(name, value);
    (void)co_await exchange.Send(std::move(response));
  } else {
    const Error& error = result.error();
    (void)co_await exchange.Send(Response::Json(StatusOf(error.code()), ErrorJson(error)));
  }
}

Task<Status> MessageStream::Send(const boost::json::object& message) {
  std::string json = boost::json::serialize(message);
  co_return co_await SendRaw(json);
}

Task<Status> MessageStream::SendRaw(std::string_view json) {
  std::string envelope = Envelope(json);
  if (started_) co_return co_await exchange_.Write(envelope);
  co_return co_await Start(envelope);
}

Task<Status> MessageStream::Start(std::string_view first) {
  started_ = true;
  ResponseHead head{.headers = more_};
  head.headers.Set("Content-Type", kStreamType);
  return exchange_.StartStream(std::move(head), std::nullopt, first);
}

Task<void> ServeStream(Exchange& exchange, const StreamMethod& method, size_t max_request_bytes,
                       Headers more) {
  if (auto refusal = CheckProtocol(exchange.request(), kStreamType)) {
    (void)co_await exchange.Send(std::move(*refusal));
    co_return;
  }
  MessageStream stream(exchange, std::move(more));
  Status result = co_await CallStream(stream, method, max_request_bytes);
  boost::json::object end;
  if (!result) end["error"] = ErrorJson(result.error());
  std::string envelope = Envelope(boost::json::serialize(end), kEndStream);
  if (!stream.started_ && !co_await stream.Start({})) co_return;
  (void)co_await exchange.FinishStream(envelope);
}

}  // namespace caisson::http

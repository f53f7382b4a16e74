#include "sdk/process_stream.h"

#include <boost/json.hpp>
#include <csignal>
#include <cstring>

#include "base/encoding.h"
#include "base/text.h"
#include "http/connect_rpc.h"

namespace caisson::sdk {
namespace {

namespace json = boost::json;

constexpr size_t kChunk = 64 << 10;
constexpr size_t kMaxEnvelope = 16 << 20;
constexpr size_t kEnvelopeHead = 5;
constexpr uint8_t kEndStream = 0x02;
constexpr size_t kMaxErrorText = 4096;

Error BrokenOff() {
  return Error(Code::kUnavailable,
               "the connection to the sandbox was lost before the end of the command was told");
}

std::string TextOf(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->as_string()) : std::string();
}

const json::object* ObjectIn(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value ? value->if_object() : nullptr;
}

std::optional<Code> CodeByName(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Code::kUnauthenticated); ++i)
    if (CodeName(static_cast<Code>(i)) == name) return static_cast<Code>(i);
  return std::nullopt;
}

Code CodeByStatus(unsigned status) {
  switch (status) {
    case 400:
      return Code::kInvalidArgument;
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    case 409:
      return Code::kAlreadyExists;
    case 429:
    case 507:
      return Code::kResourceExhausted;
    case 501:
      return Code::kUnimplemented;
    case 502:
    case 503:
    case 504:
      return Code::kUnavailable;
    default:
      return status >= 500 ? Code::kInternal : Code::kUnknown;
  }
}

// Of {"code","message"}; `code` is a name in one place and a status in others.
Error ErrorOfObject(const json::object& object, Code otherwise) {
  std::string message = TextOf(object, "message");
  Code code = CodeByName(TextOf(object, "code")).value_or(otherwise);
  // E2B's envd says "unauthenticated" of a user that the sandbox does not have, as of a wrong
  // token.
  if (code == Code::kUnauthenticated && message.starts_with("invalid username"))
    code = Code::kInvalidArgument;
  return Error(code, message.empty() ? "the sandbox refused it without a reason" : message);
}

// "signal: killed" -> 137
int StatusOfSignal(std::string_view text) {
  constexpr std::string_view kPrefix = "signal: ", kCore = " (core dumped)";
  if (text.ends_with(kCore)) text.remove_suffix(kCore.size());
  if (text.starts_with(kPrefix))
    for (int n = 1; n < NSIG; ++n)
      if (EqualsIgnoreCase(text.substr(kPrefix.size()), strsignal(n))) return 128 + n;
  return 128;
}

int ExitCodeOf(const json::object& end) {
  const json::value* code = end.if_contains("exitCode");
  int64_t number = code && code->is_int64() ? code->as_int64() : 0;
  if (number >= 0) return static_cast<int>(number & 0xff);
  std::string status = TextOf(end, "status");
  return StatusOfSignal(status.empty() ? TextOf(end, "error") : status);
}

ProcessEvent Read(const json::object& event) {
  using Kind = ProcessEvent::Kind;
  ProcessEvent out;
  if (const json::object* start = ObjectIn(event, "start")) {
    out.kind = Kind::kStarted;
    const json::value* pid = start->if_contains("pid");
    if (pid && pid->is_number()) out.pid = pid->to_number<int64_t>();
  } else if (const json::object* data = ObjectIn(event, "data")) {
    for (auto [name, kind] :
         {std::pair("stdout", Kind::kStdout), {"stderr", Kind::kStderr}, {"pty", Kind::kPty}}) {
      if (!data->contains(name)) continue;
      out.kind = kind;
      out.data = Base64Decode(TextOf(*data, name)).value_or("");
    }
  } else if (const json::object* end = ObjectIn(event, "end")) {
    out.kind = Kind::kEnded;
    out.exit_code = ExitCodeOf(*end);
  }
  return out;
}

}  // namespace

Error ErrorOfAnswer(unsigned status, std::string_view body) {
  boost::system::error_code ec;
  json::value parsed = json::parse(body, ec);
  if (!ec && parsed.is_object()) return ErrorOfObject(parsed.as_object(), CodeByStatus(status));
  return Error(CodeByStatus(status), fmt::format("the sandbox answered {}: {}", status,
                                                 ToUtf8(Trim(body.substr(0, 500)))));
}

Task<Result<ProcessStream>> ProcessStream::Open(std::unique_ptr<http::ClientConnection> connection,
                                                http::RequestHead head, json::object message) {
  std::string body = http::Envelope(json::serialize(message));
  CO_TRY(co_await connection->SendHead(std::move(head), body.size(), body));
  CO_TRY_ASSIGN(http::ResponseHead answer, co_await connection->ReadHead());
  if (answer.status != 200) {
    std::string text(kMaxErrorText, '\0');
    auto size = co_await connection->ReadBody(text);
    co_return tl::unexpected(
        ErrorOfAnswer(answer.status, std::string_view(text).substr(0, size ? *size : 0)));
  }
  co_return ProcessStream(std::move(connection));
}

Task<Status> ProcessStream::Need(size_t size) {
  std::string more(kChunk, '\0');
  while (buffer_.size() < size) {
    auto n = co_await connection_->ReadBody(more);
    if (!n && n.error().code() == Code::kCanceled) co_return tl::unexpected(n.error());
    if (!n || *n == 0) co_return tl::unexpected(BrokenOff());
    buffer_.append(more, 0, *n);
  }
  co_return Status();
}

Task<Result<std::optional<ProcessEvent>>> ProcessStream::Next() {
  CO_TRY(co_await Need(kEnvelopeHead));
  auto byte = [this](size_t i) { return static_cast<uint8_t>(buffer_[i]); };
  size_t size = size_t{byte(1)} << 24 | size_t{byte(2)} << 16 | size_t{byte(3)} << 8 | byte(4);
  // A hostile sandbox must not make us hold more.
  if (size > kMaxEnvelope)
    co_return Fail(Code::kDataLoss, "the sandbox sent something that is not a stream of events");
  CO_TRY(co_await Need(kEnvelopeHead + size));
  bool last = byte(0) & kEndStream;
  boost::system::error_code ec;
  json::value parsed = json::parse(std::string_view(buffer_).substr(kEnvelopeHead, size), ec);
  buffer_.erase(0, kEnvelopeHead + size);
  if (ec || !parsed.is_object())
    co_return Fail(Code::kDataLoss, "the sandbox sent an event that is not JSON");
  if (last) {
    if (const json::object* error = ObjectIn(parsed.as_object(), "error"))
      co_return tl::unexpected(ErrorOfObject(*error, Code::kUnknown));
    if (!ended_) co_return tl::unexpected(BrokenOff());
    co_return std::nullopt;
  }
  const json::object* event = ObjectIn(parsed.as_object(), "event");
  ProcessEvent out = event ? Read(*event) : ProcessEvent();
  if (out.kind == ProcessEvent::Kind::kEnded) ended_ = true;
  co_return out;
}

}  // namespace caisson::sdk

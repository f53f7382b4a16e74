// Connect envelopes and bodies, as envd reads them: unary, server stream, client stream.
#include "http/connect_rpc.h"

#include <boost/json/serialize.hpp>

#include "envd/client_stream.h"
#include "envd/proto_json.h"
#include "fuzz/support.h"

namespace caisson::fuzz {
namespace {

namespace json = boost::json;
constexpr size_t kMaxRequest = 8 << 10;

Task<Result<json::object>> Unary(http::Exchange&, json::object request) { co_return request; }

Task<Status> ServerStream(http::MessageStream& stream, json::object request) {
  CO_TRY(co_await stream.Send(request));
  envd::Fields fields(request);
  CO_TRY_ASSIGN(std::string data, fields.Bytes("stdin"));
  co_return co_await stream.SendRaw(R"({"event":{}})");
}

Task<Status> ReadClientStream(http::Exchange& exchange) {
  for (;;) {
    CO_TRY_ASSIGN(auto message, co_await envd::ReadClientMessage(exchange, kMaxRequest));
    if (!message) co_return Status();
  }
}

Task<bool> Serve(int kind, MemoryExchange& exchange) {
  if (kind == 0) {
    co_await http::ServeUnary(exchange, Unary, kMaxRequest);
  } else if (kind == 1) {
    co_await http::ServeStream(exchange, ServerStream, kMaxRequest);
  } else {
    co_await envd::AnswerClientStream(exchange, co_await ReadClientStream(exchange));
  }
  co_return true;
}

// Every answer of a stream is a row of envelopes, the last of which has the end flag.
void CheckEnvelopes(std::string_view answer) {
  bool ended = false;
  while (!answer.empty()) {
    Check(!ended && answer.size() >= 5, "bytes after the end of a stream");
    size_t size = 0;
    for (int i = 1; i < 5; ++i) size = size << 8 | static_cast<uint8_t>(answer[i]);
    Check(answer.size() >= 5 + size, "an envelope is cut off");
    ended = answer[0] == 2;
    answer.remove_prefix(5 + size);
  }
  Check(ended, "a stream has no end");
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  if (size < 2) return 0;
  int kind = data[0] % 3;
  http::RequestHead head;
  head.method = "POST";
  head.target = "/process.Process/Start";
  head.headers.Add("Content-Type", kind == 0 ? "application/json" : "application/connect+json");
  std::string_view body(reinterpret_cast<const char*>(data) + 2, size - 2);
  fuzz::MemoryExchange exchange(head, body, data[1] + 1);
  fuzz::Run(fuzz::Serve(kind, exchange));
  fuzz::Check(exchange.answers == 1, "a request has not exactly one answer");
  if (kind != 0) fuzz::CheckEnvelopes(exchange.answer);
  std::string envelope = http::Envelope(body);
  fuzz::Check(envelope.size() == body.size() + 5 && envelope.ends_with(body), "a broken envelope");
  return 0;
}

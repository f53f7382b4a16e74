// A whole connection of the server: pipelining, Expect, refusals, keep-alive. Whatever comes in,
// what goes out is a row of well-formed responses.
#include "fuzz/http_messages.h"
#include "http/connection.h"

namespace caisson::fuzz {
namespace {

constexpr size_t kMaxBody = 1000;

Task<void> Answer(http::Exchange& exchange) {
  const http::RequestHead& head = exchange.request();
  http::Query query = head.ParsedQuery();
  if (head.Path() == "/unread") {
    (void)co_await exchange.Send(http::Response::Text(200, "not read"));
    co_return;
  }
  auto body = co_await exchange.ReadAll(kMaxBody);
  if (!body) co_return;  // the server answers 413 or 400
  if (head.Path() == "/stream") {
    http::ResponseHead answer{.headers = {{"X-Query", std::string(head.QueryString())}}};
    (void)co_await exchange.StartStream(std::move(answer), std::nullopt, "first ");
    if (!body->empty()) (void)co_await exchange.Write(*body);
    (void)co_await exchange.FinishStream("last");
    co_return;
  }
  http::Response response = http::Response::Text(200, std::move(*body));
  for (const auto& [name, value] : query.all()) response.headers.Add(name, value);
  (void)co_await exchange.Send(std::move(response));
}

Task<bool> Serve(std::string_view data, size_t piece) {
  http::ServerOptions options;
  options.max_header_bytes = 2000;
  bool stopping = false;
  http::Handler handler = Answer;
  http::Connection connection(std::make_unique<MemoryStream>(data, piece), options, handler,
                              stopping);
  co_await connection.Run();
  co_return true;
}

}  // namespace
}  // namespace caisson::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson;
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  fuzz::MemoryStream::written.clear();
  fuzz::Run(fuzz::Serve(text, data[0] + 1));
  std::string out = fuzz::MemoryStream::written;
  if (out.empty() || fuzz::MemoryStream::was_reset) return 0;
  // An answer to HEAD has a length and no body, which a reader can only know from the request.
  if (text.find("HEAD ") != std::string_view::npos) return 0;
  auto answers = fuzz::ReadMessages<http::ResponseHead>(out, out.size());
  fuzz::Check(!answers.empty(), "the answer is no HTTP response");
  for (const auto& answer : answers)
    fuzz::Check(answer.head.status >= 100 && answer.head.status < 600, "no such status");
  return 0;
}

#include "api/frame.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/json.hpp>
#include <deque>

#include "account/accounts.h"
#include "api/audit.h"
#include "api/authentication.h"
#include "api/cors.h"
#include "api/idempotency.h"
#include "api/input.h"
#include "api/openapi.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"

namespace caisson::api {
namespace {

// Where no body belongs, a small one is looked at: some clients send "{}" with every POST.
constexpr size_t kStrayBody = 1024;
constexpr size_t kMaxIdempotencyKey = 255;
constexpr std::chrono::seconds kRevokedInterval{2};

// What every frame knows.
constexpr std::string_view kErrorSchema = R"({
  "type": "object", "required": ["error"], "properties": {"error": {
    "type": "object", "required": ["code", "message", "debug_id", "retryable"], "properties": {
      "code": {"type": "string", "description": "a word for programs"},
      "message": {"type": "string", "description": "a sentence for people"},
      "debug_id": {"type": "string", "description": "the X-Request-Id of this request"},
      "retryable": {"type": "boolean", "description": "the same request may work later"}}}}})";

// A mistake in this program, found at its start.
[[noreturn]] void Broken(std::string_view why, std::string_view which) {
  LogError(why, {{"operation", which}});
  std::abort();
}

}  // namespace

// A stream of events or a WebSocket.
bool StaysOpen(const Operation& operation) {
  return operation.access != Access::kNobody &&
         (operation.stream == "text/event-stream" || operation.responses.contains(101));
}

bool IsIdempotent(const Operation& operation) {
  return operation.method == "POST" && operation.access != Access::kNobody;
}

class Frame::Impl {
 public:
  Impl(http::Router& router, store::Store& store, account::Accounts& accounts, const Config& config)
      : router_(router),
        store_(store),
        accounts_(accounts),
        config_(config),
        cors_(config.cors_origins),
        idempotency_(store, config) {
    schemas_.Add("Object", R"({"type": "object"})");
    schemas_.Add("Error", kErrorSchema);
  }

  void Add(Served served) {
    for (const Served& other : operations_)
      if ((other.operation.method == served.operation.method &&
           other.operation.pattern == served.operation.pattern) ||
          other.operation.id == served.operation.id)
        Broken("an operation of the API is there twice", served.operation.id);
    // Who adds a route may have put its path together.
    served.operation.pattern = names_.emplace_back(served.operation.pattern);
    const Operation& operation = operations_.emplace_back(std::move(served)).operation;
    router_.Add(operation.method, operation.pattern,
                [this, &operation](http::Exchange& exchange, http::PathParams params) {
                  return Serve(exchange, std::move(params), operation);
                });
    std::string pattern(operation.pattern);
    auto [methods, added] = methods_.try_emplace(pattern);
    methods->second += fmt::format("{}, ", operation.method);
    if (operation.method == "GET") methods->second += "HEAD, ";
    if (!added) return;
    router_.Add("OPTIONS", pattern, [this, pattern](http::Exchange& exchange, http::PathParams) {
      return ServeOptions(exchange, pattern);
    });
  }

  void AddAlias(std::string_view method, std::string_view pattern, std::string_view canonical) {
    for (const Served& served : operations_) {
      if (served.operation.method != method || served.operation.pattern != canonical) continue;
      Served alias{served.operation, /*alias=*/true};
      alias.operation.pattern = pattern;
      alias.operation.id = names_.emplace_back(AliasId(alias.operation.id, pattern));
      return Add(std::move(alias));
    }
    Broken("an alias of the API leads nowhere", pattern);
  }

  Task<http::Response> Run(std::string_view id, Call& call) {
    auto found = std::ranges::find(operations_, id, [](const Served& s) { return s.operation.id; });
    if (found == operations_.end()) Broken("there is no such operation of the API", id);
    auto answer = co_await RunChecked(found->operation, call);
    if (!answer) co_return ErrorResponse(answer.error(), call.exchange.request_id());
    co_return std::move(*answer);
  }

  Schemas schemas_;
  std::deque<Served> operations_;  // stays where it is when it grows
  Rates rates_;
  bool check_answers_ = false;

 private:
  // How far a request has come, for what is written down about it.
  struct Progress {
    std::string idempotency_id;
    bool replayed = false;
  };

  Task<void> Serve(http::Exchange& exchange, http::PathParams params, const Operation& operation);
  Task<void> ServeOptions(http::Exchange& exchange, std::string pattern);
  Task<Checked<http::Response>> Handle(Call& call, const Operation& operation, Progress& progress);
  Task<Checked<http::Response>> HandleOnce(Call& call, const Operation& operation,
                                           Progress& progress);
  Task<Checked<http::Response>> RunChecked(const Operation& operation, Call& call);
  Checked<void> Admit(Call& call, const Operation& operation);
  // A stream or a conversation: ends when the caller is shut out.
  Task<Checked<http::Response>> HandleLong(Call& call, const Operation& operation);
  Task<void> UntilRevoked(Principal who);
  Checked<http::Response> AnswerOf(const Call& call, Result<http::Response> answer) const;
  Task<Checked<void>> ReadBody(Call& call, const Operation& operation);
  Task<Checked<std::string>> ReadText(http::Exchange& exchange, size_t max_bytes);
  // The audit row, and the answer for the Idempotency-Key, in one transaction.
  Task<void> WriteDown(Call& call, const Operation& operation, const Progress& progress,
                       unsigned status, const std::string& body);
  void CheckAnswer(const Operation& operation, http::Response& response);

  http::Router& router_;
  store::Store& store_;
  account::Accounts& accounts_;
  const Config& config_;
  const Cors cors_;
  Idempotency idempotency_;
  Audit audit_;
  std::map<std::string, std::string> methods_;  // of each pattern: "GET, HEAD, "
  std::deque<std::string> names_;               // that operations refer to
};

Task<void> Frame::Impl::ServeOptions(http::Exchange& exchange, std::string pattern) {
  (void)co_await exchange.Send(
      cors_.Preflight(exchange.request(), methods_.at(pattern) + "OPTIONS"));
}

Task<void> Frame::Impl::Serve(http::Exchange& exchange, http::PathParams params,
                              const Operation& operation) {
  auto begun = std::chrono::steady_clock::now();
  Call call{.exchange = exchange,
            .params = std::move(params),
            .query = exchange.request().ParsedQuery(),
            .headers = cors_.HeadersFor(exchange.request())};
  Progress progress;
  Checked<http::Response> answer = Refuse(500, "internal", "the request failed unexpectedly");
  try {
    answer = co_await Handle(call, operation, progress);
  } catch (const boost::system::system_error& e) {
    if (e.code() == asio::error::operation_aborted) throw;
    LogError("a handler failed", {{"operation", operation.id}, {"error", e.what()}});
  } catch (const std::exception& e) {
    LogError("a handler failed", {{"operation", operation.id}, {"error", e.what()}});
  }
  http::Response response =
      answer ? std::move(*answer) : ErrorResponse(answer.error(), exchange.request_id());
  if (check_answers_ && answer && !exchange.answered()) CheckAnswer(operation, response);
  co_await WriteDown(call, operation, progress,
                     exchange.answered() ? exchange.status() : response.status, response.body);
  if (exchange.answered()) co_return;
  if (response.status >= 500 && response.status != 501)
    LogWarn("a request failed", {{"request", exchange.request_id()},
                                 {"operation", operation.id},
                                 {"status", response.status},
                                 {"answer", response.body}});
  for (const auto& [name, value] : call.headers)
    if (!response.headers.Has(name)) response.headers.Set(name, value);
  std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
  response.headers.Set("Server-Timing", fmt::format("total;dur={:.1f}", took.count()));
  // A client that is gone cannot be told, and that is no failure of ours.
  (void)co_await exchange.Send(std::move(response));
}

Checked<void> Frame::Impl::Admit(Call& call, const Operation& operation) {
  if (operation.access == Access::kNobody) return {};
  auto who = Identify(call.exchange.request(), accounts_);
  if (!who) return tl::unexpected(who.error());
  call.who = std::move(*who);
  if (rates_.admit) {
    if (Status admitted = rates_.admit(call.who.user_id); !admitted) {
      Refusal refusal = RefusalOf(admitted.error());
      refusal.retry_after_s = rates_.retry_after(call.who.user_id).count();
      return tl::unexpected(std::move(refusal));
    }
  }
  return CheckAccess(call.who, operation.access);
}

// A handler may count on its own, so a refusal for that says when the user may try again.
Checked<http::Response> Frame::Impl::AnswerOf(const Call& call,
                                              Result<http::Response> answer) const {
  if (answer) return std::move(*answer);
  Refusal refusal = RefusalOf(answer.error());
  if (answer.error().code() == Code::kResourceExhausted && rates_.retry_after)
    refusal.retry_after_s = rates_.retry_after(call.who.user_id).count();
  return tl::unexpected(std::move(refusal));
}

Task<Checked<http::Response>> Frame::Impl::Handle(Call& call, const Operation& operation,
                                                  Progress& progress) {
  auto checked = Admit(call, operation);
  if (checked) checked = CheckParams(call.params);
  if (checked) checked = CheckQuery(call.query, operation.parameters);
  if (checked && call.query.Get("all") == "true" && !call.who.admin())
    checked = Refuse(403, "permission_denied", "only an admin sees the things of all users");
  if (checked) checked = co_await ReadBody(call, operation);
  if (!checked) co_return tl::unexpected(checked.error());
  if (call.exchange.request().method == "HEAD" && operation.stream == "text/event-stream") {
    http::Response head = http::Response::Empty(200);
    head.headers.Set("Content-Type", operation.stream);
    co_return head;
  }
  if (IsIdempotent(operation) && call.exchange.request().headers.Has("Idempotency-Key"))
    co_return co_await HandleOnce(call, operation, progress);
  call.new_id = RandomUuid();
  if (StaysOpen(operation)) co_return co_await HandleLong(call, operation);
  co_return AnswerOf(call, co_await operation.handler(call));
}

Task<Checked<http::Response>> Frame::Impl::HandleLong(Call& call, const Operation& operation) {
  using namespace asio::experimental::awaitable_operators;
  auto first = co_await (operation.handler(call) || UntilRevoked(call.who));
  if (first.index() == 0) co_return AnswerOf(call, std::get<0>(std::move(first)));
  if (call.exchange.answered()) call.exchange.Abort();
  co_return Refuse(401, "unauthenticated", "the key or the login is not valid any more");
}

// SECURITY: who is shut out must not go on in what was opened before.
Task<void> Frame::Impl::UntilRevoked(Principal who) {
  account::Identity identity{who.user_id, who.key_id, who.login_id, who.role};
  do co_await SleepFor(kRevokedInterval);
  while (accounts_.StillIs(identity));
}

Task<Checked<http::Response>> Frame::Impl::HandleOnce(Call& call, const Operation& operation,
                                                      Progress& progress) {
  const http::RequestHead& request = call.exchange.request();
  std::string key(request.headers.Value("Idempotency-Key"));
  if (key.empty() || key.size() > kMaxIdempotencyKey)
    co_return Refuse(422, "validation_failed", "Idempotency-Key must have 1 to {} characters",
                     kMaxIdempotencyKey);
  auto begun = co_await idempotency_.Begin(
      {.user_id = call.who.user_id,
       .key = std::move(key),
       .route = fmt::format("{} {}", operation.method, operation.pattern),
       .hash = accounts_.Fingerprint(
           fmt::format("{} {}\n{}", request.method, request.target, call.raw_body))});
  if (!begun) co_return tl::unexpected(begun.error());
  if (!begun->earlier) {
    progress.idempotency_id = begun->id;
    call.new_id = begun->new_id;
    co_return AnswerOf(call, co_await operation.handler(call));
  }
  progress.replayed = true;
  if (operation.secret)
    co_return Refuse(409, "already_done",
                     "this was done before, and its answer is shown only once");
  http::Response response = http::Response::Empty(static_cast<unsigned>(begun->earlier->status));
  if (!begun->earlier->body.empty()) {
    response.body = begun->earlier->body;
    response.headers.Set("Content-Type", "application/json");
  }
  response.headers.Set("Idempotency-Replayed", "true");
  co_return response;
}

Task<Checked<http::Response>> Frame::Impl::RunChecked(const Operation& operation, Call& call) {
  call.inner = true;
  auto checked = CheckAccess(call.who, operation.access);
  if (checked) checked = CheckParams(call.params);
  if (checked) checked = CheckQuery(call.query, operation.parameters);
  if (checked && !operation.request.empty()) {
    json::value body = std::move(call.body);
    checked = CheckSchema(schemas_, operation.request, body);
    if (checked) call.body = std::move(body.as_object());
  }
  if (!checked) co_return tl::unexpected(checked.error());
  auto answer = co_await operation.handler(call);
  if (!answer) co_return tl::unexpected(RefusalOf(answer.error()));
  co_return std::move(*answer);
}

Task<Checked<std::string>> Frame::Impl::ReadText(http::Exchange& exchange, size_t max_bytes) {
  auto text = co_await exchange.ReadAll(max_bytes);
  if (text) co_return std::move(*text);
  switch (text.error().code()) {
    case Code::kOutOfRange:
      co_return Refuse(413, "payload_too_large", "the body is larger than {} bytes", max_bytes);
    case Code::kDeadlineExceeded:
      co_return tl::unexpected(
          Refusal{408, "request_timeout", "the body of the request did not arrive in time", true});
    case Code::kDataLoss:
      co_return Refuse(400, "malformed_body", "the body of the request ended early");
    default:
      co_return tl::unexpected(RefusalOf(text.error()));
  }
}

Task<Checked<void>> Frame::Impl::ReadBody(Call& call, const Operation& operation) {
  if (operation.reads_body || !ChangesState(operation.method)) co_return Checked<void>();
  bool takes = operation.wants_raw_body || !operation.request.empty();
  auto text = co_await ReadText(
      call.exchange, takes ? static_cast<size_t>(config_.api_max_body_bytes) : kStrayBody);
  if (!text) co_return tl::unexpected(text.error());
  call.raw_body = std::move(*text);
  if (operation.wants_raw_body) co_return Checked<void>();
  std::string_view trimmed = Trim(call.raw_body);
  if (!takes) {
    if (trimmed.empty() || trimmed == "{}") co_return Checked<void>();
    co_return Refuse(422, "validation_failed", "this call takes no body");
  }
  if (trimmed.empty() && operation.body_optional) co_return Checked<void>();
  auto checked = CheckContentType(call.exchange.request());
  if (!checked) co_return checked;
  auto value = ParseJson(call.raw_body, operation.takes_files ? LimitsOfFiles(config_) : config_);
  if (!value) co_return tl::unexpected(value.error());
  checked = CheckSchema(schemas_, operation.request, *value);
  if (!checked) co_return checked;
  if (!value->is_object()) co_return Refuse(422, "validation_failed", "the body must be an object");
  call.body = std::move(value->as_object());
  co_return Checked<void>();
}

Task<void> Frame::Impl::WriteDown(Call& call, const Operation& operation, const Progress& progress,
                                  unsigned status, const std::string& body) {
  if (!ChangesState(operation.method)) co_return;
  // Nobody is behind a request that was refused for that: the log has it.
  if (call.who.user_id.empty() && operation.access != Access::kNobody) co_return;
  store::AuditRow row{.at = Now(),
                      .actor_id = call.who.user_id,
                      .key_id = call.who.key_id,
                      .action = fmt::format("{} {}", operation.method, operation.pattern),
                      .target = call.target,
                      .status = status,
                      .request_id = call.exchange.request_id(),
                      .address = call.exchange.PeerAddress()};
  if (auto id = call.params.find("id"); row.target.empty() && id != call.params.end())
    row.target = ToUtf8(id->second);
  bool wanted = audit_.Wants(row);
  if (!wanted && progress.idempotency_id.empty()) co_return;
  bool streamed = call.exchange.answered();
  auto written = co_await store_.Write(
      [row, wanted, id = progress.idempotency_id, status = streamed ? 0 : status,
       body = operation.secret ? std::string()
                               : body](store::Transaction& tx) mutable -> Result<bool> {
        if (wanted) TRY(tx.Append(row));
        if (!id.empty()) TRY(Idempotency::Finish(tx, id, status, body));
        return true;
      });
  idempotency_.End(progress.idempotency_id);
  if (!written)
    LogError("a call was not written into the audit log", {{"action", row.action},
                                                           {"request", row.request_id},
                                                           {"error", written.error().message()}});
}

void Frame::Impl::CheckAnswer(const Operation& operation, http::Response& response) {
  if (response.status >= 400) return;
  std::string why;
  auto described = operation.responses.find(static_cast<int>(response.status));
  if (described == operation.responses.end()) {
    why = fmt::format("{} answers {}, which it does not describe", operation.id, response.status);
  } else if (described->second.empty()) {
    if (!response.body.empty() && operation.stream.empty())
      why = fmt::format("{} answers with a body, which it does not describe", operation.id);
  } else {
    boost::system::error_code ec;
    json::value value = json::parse(response.body, ec);
    Status checked =
        ec ? Fail(Code::kInternal, "it is not JSON") : schemas_.Check(described->second, value);
    if (!checked) why = fmt::format("{}: {}", operation.id, checked.error().message());
  }
  if (!why.empty()) response = ErrorResponse(Error(Code::kInternal, why), "test");
}

Frame::Frame(http::Router& router, store::Store& store, account::Accounts& accounts,
             const Config& config)
    : impl_(std::make_unique<Impl>(router, store, accounts, config)) {}
Frame::~Frame() = default;

void Frame::AddSchema(std::string_view name, std::string_view text) {
  impl_->schemas_.Add(name, text);
}
void Frame::Add(Operation operation) { impl_->Add({std::move(operation), /*alias=*/false}); }
void Frame::AddAlias(std::string_view method, std::string_view pattern,
                     std::string_view canonical) {
  impl_->AddAlias(method, pattern, canonical);
}
Task<http::Response> Frame::Run(std::string_view id, Call& call) { return impl_->Run(id, call); }
void Frame::SetRates(Rates rates) { impl_->rates_ = std::move(rates); }
void Frame::CheckAnswers() { impl_->check_answers_ = true; }
std::set<std::string> Frame::LastingRoutes() const {
  std::set<std::string> routes;
  for (const Served& served : impl_->operations_) {
    const Operation& one = served.operation;
    if (one.lasts || one.reads_body || !one.stream.empty() || one.responses.contains(101))
      routes.insert(fmt::format("{} {}", one.method, one.pattern));
  }
  return routes;
}

json::object Frame::Document() const { return MakeDocument(impl_->operations_, impl_->schemas_); }

}  // namespace caisson::api

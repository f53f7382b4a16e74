// Handlers of /sandboxes: the life of a sandbox.
#include <boost/json.hpp>

#include "base/encoding.h"
#include "e2b/answer.h"
#include "e2b/api.h"
#include "e2b/fields.h"
#include "e2b/listing.h"
#include "e2b/network.h"

namespace caisson::e2b {
namespace {

namespace json = boost::json;

constexpr size_t kMaxIdempotencyKey = 255;

Result<std::string> DecodeIdempotencyKey(const http::RequestHead& request) {
  auto key = request.headers.Get("Idempotency-Key");
  if (!key) return std::string();
  bool good = !key->empty() && key->size() <= kMaxIdempotencyKey &&
              std::all_of(key->begin(), key->end(), [](unsigned char c) {
                return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
              });
  if (!good)
    return Fail(Code::kInvalidArgument,
                "Idempotency-Key must be 1 to {} letters, digits, '-' or '_'", kMaxIdempotencyKey);
  return std::string(*key);
}

// Errors of an idempotent creation have names of their own, which newer SDKs look at.
http::Response CreateError(const Error& error) {
  if (error.code() == Code::kAborted)
    return ErrorAnswer(409, error.message(), "idempotency_in_progress");
  if (error.code() == Code::kAlreadyExists)
    return ErrorAnswer(422, error.message(), "idempotency_request_mismatch");
  return StartError(error);
}

http::Response ListAnswer(const std::vector<sandbox::Info>& items) {
  json::array list;
  for (const sandbox::Info& info : items) list.push_back(EncodeListed(info));
  return http::Response::Json(200, list);
}

}  // namespace

Api::Answer Api::CreateV1(Call call) { return Create(std::move(call), Version::kV1); }
Api::Answer Api::CreateV2(Call call) { return Create(std::move(call), Version::kV2); }

Api::Answer Api::Create(Call call, Version version) {
  const http::RequestHead& request = call.exchange.request();
  CO_TRY_ASSIGN(std::string idempotency_key, DecodeIdempotencyKey(request));
  CO_TRY_ASSIGN(std::string text, co_await ReadText(call.exchange));
  CO_TRY_ASSIGN(json::object body, ParseBody(text, /*optional=*/false));
  CO_TRY_ASSIGN(sandbox::CreateOptions options,
                DecodeCreate(body, version, DefaultsOf(call.key_id)));
  options.key_id = call.key_id;
  if (!idempotency_key.empty()) {
    options.idempotency_key = std::move(idempotency_key);
    options.request_hash = HexEncode(Sha256(fmt::format("{}\n{}", request.Path(), text)));
  }
  auto made = co_await manager_.Create(std::move(options));
  if (!made) co_return CreateError(made.error());
  call.target = made->id;
  co_return http::Response::Json(201, EncodeSandbox(*made, domain_));
}

Api::Answer Api::ListV1(Call call) {
  sandbox::ListFilter filter{.key_id = call.key_id, .paused = false};
  http::Query query = call.query();
  if (auto text = query.Get("metadata")) {
    CO_TRY_ASSIGN(filter.metadata, DecodeMetadata(*text));
  }
  co_return ListAnswer(manager_.List(filter));
}

Api::Answer Api::ListV2(Call call) {
  CO_TRY_ASSIGN(ListQuery query, DecodeListQuery(call.query()));
  query.filter.key_id = call.key_id;
  auto all = manager_.List(query.filter);
  auto running = std::count_if(all.begin(), all.end(), [](const sandbox::Info& info) {
    return info.state == sandbox::State::kRunning;
  });
  Page page = CutPage(std::move(all), query);
  http::Response response = ListAnswer(page.items);
  if (!page.next_token.empty()) response.headers.Set("X-Next-Token", page.next_token);
  if (query.filter.running) response.headers.Set("X-Total-Running", std::to_string(running));
  co_return response;
}

Api::Answer Api::Get(Call call) {
  CO_TRY_ASSIGN(sandbox::Info info, Find(call));
  json::object detail = EncodeDetail(info, domain_);
  // SECURITY: with it one does not only look.
  if (call.only_looks) detail.erase("envdAccessToken");
  co_return http::Response::Json(200, detail);
}

Api::Answer Api::Kill(Call call) {
  CO_TRY_ASSIGN(sandbox::Info info, Find(call));
  CO_TRY(co_await manager_.Kill(call.key_id, info.id));
  co_return http::Response::Empty(204);
}

Api::Answer Api::ConnectV1(Call call) { return Connect(std::move(call), Version::kV1); }
Api::Answer Api::ConnectV2(Call call) { return Connect(std::move(call), Version::kV2); }

Api::Answer Api::Connect(Call call, Version version) {
  CO_TRY_ASSIGN(auto body, co_await ReadBody(call.exchange, version == Version::kV2));
  CO_TRY_ASSIGN(auto options, DecodeConnect(body, version, DefaultsOf(call.key_id)));
  CO_TRY_ASSIGN(std::string id, DecodeSandboxId(call.params.at("id")));
  auto connected = co_await manager_.Connect(call.key_id, id, options);
  if (!connected) co_return StartError(connected.error());
  co_return http::Response::Json(connected->resumed ? 201 : 200,
                                 EncodeSandbox(connected->info, domain_));
}

Api::Answer Api::SetTimeout(Call call) {
  CO_TRY_ASSIGN(auto body, co_await ReadBody(call.exchange, /*optional=*/false));
  CO_TRY_ASSIGN(auto timeout, DecodeTimeout(body));
  CO_TRY_ASSIGN(std::string id, DecodeSandboxId(call.params.at("id")));
  CO_TRY(co_await manager_.SetTimeout(call.key_id, id, timeout, /*only_extend=*/false));
  co_return http::Response::Empty(204);
}

Api::Answer Api::Refresh(Call call) {
  CO_TRY_ASSIGN(auto body, co_await ReadBody(call.exchange, /*optional=*/true));
  CO_TRY_ASSIGN(auto duration, DecodeRefresh(body));
  CO_TRY_ASSIGN(std::string id, DecodeSandboxId(call.params.at("id")));
  CO_TRY(co_await manager_.SetTimeout(call.key_id, id, duration, /*only_extend=*/true));
  co_return http::Response::Empty(204);
}

Api::Answer Api::SetNetwork(Call call) {
  CO_TRY_ASSIGN(sandbox::Info info, Find(call));
  CO_TRY_ASSIGN(auto body, co_await ReadBody(call.exchange, /*optional=*/true));
  CO_TRY_ASSIGN(auto settings, DecodeNetworkUpdate(body, info.network));
  CO_TRY(co_await manager_.SetNetwork(call.key_id, info.id, settings.allow_internet,
                                      settings.options.as_requested_json));
  co_return http::Response::Empty(204);
}

}  // namespace caisson::e2b

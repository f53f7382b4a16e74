#include "api/api.h"

#include <array>
#include <boost/json.hpp>
#include <limits>

#include "api/codec.h"
#include "e2b/codec.h"
#include "e2b/limits.h"

namespace caisson::api {
namespace {

namespace json = boost::json;

constexpr int64_t kDefaultEvents = 100, kMaxEvents = 1000;

}  // namespace

void Api::AddRoutes(http::Router& router) {
  struct Entry {
    std::string_view method;
    std::string_view pattern;
    Method handler;
  };
  static constexpr std::array kRoutes = {
      Entry{"GET", "/api/v1/sandboxes/{id}", &Api::Show},
      Entry{"GET", "/api/v1/sandboxes/{id}/timeline", &Api::Timeline},
      Entry{"GET", "/api/v1/sandboxes/{id}/diagnostics", &Api::Diagnostics},
      Entry{"PATCH", "/api/v1/sandboxes/{id}/limits", &Api::SetLimits},
      Entry{"GET", "/api/v1/storage", &Api::Storage},
      Entry{"POST", "/api/v1/drain", &Api::Drain},
      Entry{"DELETE", "/api/v1/drain", &Api::EndDrain},
  };
  std::vector<Route> routes;
  for (const Entry& entry : kRoutes)
    routes.push_back({entry.method, entry.pattern, [this, method = entry.handler](Call call) {
                        return (this->*method)(std::move(call));
                      }});
  Add(router, std::move(routes));
}

Api::Answer Api::Show(Call call) {
  CO_TRY_ASSIGN(std::string id, e2b::DecodeSandboxId(call.params.at("id")));
  CO_TRY_ASSIGN(auto detail, co_await manager_.Inspect(call.key_id, id));
  co_return http::Response::Json(200, EncodeDetail(detail));
}

Api::Answer Api::Timeline(Call call) {
  CO_TRY_ASSIGN(std::string id, e2b::DecodeSandboxId(call.params.at("id")));
  http::Query query = call.query();
  CO_TRY_ASSIGN(auto after,
                e2b::TakeNumber(query, "after", 0, std::numeric_limits<int64_t>::max()));
  CO_TRY_ASSIGN(auto limit, e2b::TakeNumber(query, "limit", 1, kMaxEvents));
  auto most = static_cast<size_t>(limit.value_or(kDefaultEvents));
  // One more than asked for tells whether there is a next page.
  CO_TRY_ASSIGN(auto events,
                co_await manager_.Events(call.key_id, id,
                                         {.after_id = after.value_or(0), .limit = most + 1}));
  bool more = events.size() > most;
  if (more) events.pop_back();
  json::array list;
  for (const store::SandboxEvent& event : events) list.push_back(EncodeEvent(event));
  json::object body{{"events", std::move(list)}};
  if (more) body["next"] = events.back().id;
  co_return http::Response::Json(200, body);
}

Api::Answer Api::Diagnostics(Call call) {
  CO_TRY_ASSIGN(std::string id, e2b::DecodeSandboxId(call.params.at("id")));
  CO_TRY_ASSIGN(auto diagnosis, co_await manager_.Diagnose(call.key_id, id));
  auto response = http::Response::Json(200, EncodeDiagnosis(diagnosis, config_));
  response.headers.Set("Content-Disposition",
                       fmt::format("attachment; filename=\"{}.diagnostics.json\"", id));
  co_return response;
}

Api::Answer Api::SetLimits(Call call) {
  CO_TRY_ASSIGN(std::string id, e2b::DecodeSandboxId(call.params.at("id")));
  CO_TRY_ASSIGN(auto body, co_await ReadBody(call.exchange, /*optional=*/false));
  CO_TRY_ASSIGN(auto limits, e2b::DecodeLimits(body));
  if (!limits.any()) co_return Fail(Code::kInvalidArgument, "the request names no limit");
  CO_TRY_ASSIGN(auto info, co_await manager_.SetLimits(call.key_id, id, limits));
  co_return http::Response::Json(200, e2b::EncodeLimits(info));
}

Api::Answer Api::Storage(Call call) {
  // SECURITY: the numbers of all keys together are the operator's business.
  if (call.key_id != sandbox::kAdminKeyId)
    co_return Fail(Code::kPermissionDenied, "only the server's first key may see its disk use");
  CO_TRY_ASSIGN(auto use, co_await manager_.Storage());
  co_return http::Response::Json(200, EncodeStorage(use));
}

Api::Answer Api::Drain(Call call) {
  if (call.key_id != sandbox::kAdminKeyId)
    co_return Fail(Code::kPermissionDenied, "only the server's first key may drain it");
  sandbox::Drained drained = co_await manager_.Drain();
  json::array failed;
  for (const auto& [id, why] : drained.failed)
    failed.push_back(json::object{{"sandboxID", id}, {"message", why}});
  co_return http::Response::Json(
      200, json::object{{"paused", drained.paused}, {"failed", std::move(failed)}});
}

Api::Answer Api::EndDrain(Call call) {
  if (call.key_id != sandbox::kAdminKeyId)
    co_return Fail(Code::kPermissionDenied, "only the server's first key may drain it");
  manager_.EndDrain();
  co_return http::Response::Json(200, json::object{{"draining", false}});
}

}  // namespace caisson::api

#include "api/preference_routes.h"

#include <boost/json.hpp>

#include "store/person_rows.h"

namespace caisson::api {
namespace {

using store::PreferencesRow;
using store::Transaction;

constexpr std::string_view kSchema =
    R"({"type": "object", "description": "whatever the page needs; replaced as a whole"})";

http::Response Shown(const std::string& value) {
  boost::system::error_code ec;
  json::value parsed = json::parse(value, ec);
  return http::Response::Json(200,
                              ec || !parsed.is_object() ? json::value(json::object()) : parsed);
}

Answer Get(store::Store& store, Call& call) {
  CO_TRY_ASSIGN(auto row, co_await store.Read([id = call.who.user_id](Transaction& tx) {
    return tx.Get<PreferencesRow>(id);
  }));
  co_return Shown(row ? row->value : "{}");
}

Answer Put(store::Store& store, const Config& config, Call& call) {
  PreferencesRow row{
      .id = call.who.user_id, .value = json::serialize(call.body), .updated_at = Now()};
  if (static_cast<int64_t>(row.value.size()) > config.preferences_max_bytes)
    co_return ErrorResponse(
        Refusal{.status = 422,
                .code = "validation_failed",
                .message = fmt::format("preferences may have {} bytes, not {}",
                                       config.preferences_max_bytes, row.value.size())},
        call.exchange.request_id());
  CO_TRY(co_await store.Write([row](Transaction& tx) -> Status {
    TRY_ASSIGN(auto known, tx.Get<PreferencesRow>(row.id));
    return known ? tx.Update(row) : tx.Insert(row);
  }));
  call.target = call.who.user_id;
  co_return Shown(row.value);
}

}  // namespace

void AddPreferenceRoutes(Frame& frame, store::Store& store, const Config& config) {
  frame.AddSchema("Preferences", kSchema);
  frame.Add({.method = "GET",
             .pattern = "/api/v1/auth/preferences",
             .tag = "auth",
             .id = "getPreferences",
             .summary = "What the page keeps for you",
             .access = Access::kViewer,
             .responses = {{200, "Preferences"}},
             .handler = [&store](Call& call) { return Get(store, call); }});
  frame.Add({.method = "PUT",
             .pattern = "/api/v1/auth/preferences",
             .tag = "auth",
             .id = "setPreferences",
             .summary = "Replace what the page keeps for you",
             .access = Access::kViewer,
             .request = "Preferences",
             .responses = {{200, "Preferences"}},
             .handler = [&store, &config](Call& call) { return Put(store, config, call); }});
}

}  // namespace caisson::api

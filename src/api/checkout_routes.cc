#include "api/checkout_routes.h"

#include <boost/json.hpp>

#include "api/work_codec.h"

namespace caisson::api {
namespace {

constexpr std::string_view kCheckout = R"({"type":"object",
  "required":["id","owner_id","repo_url","template","uses","made_at","last_used_at"],"properties":{
  "id":{"type":"string"},"owner_id":{"type":"string"},"repo_url":{"type":"string"},
  "template":{"type":"string"},
  "depth":{"type":"integer","description":"of the clone; 0: all of its history"},
  "snapshot":{"type":"string","description":"what sandboxes are made from"},
  "bytes":{"type":"integer","description":"on the server's disk"},
  "uses":{"type":"integer","description":"tasks that cloned or fetched it"},
  "seconds_between_uses":{"type":["integer","null"],
    "description":"between the last two uses, from which follows how long it stays"},
  "made_at":{"type":"string","format":"date-time"},
  "last_used_at":{"type":"string","format":"date-time"}}})";
constexpr std::string_view kCheckoutList = R"({"type":"object",
  "required":["checkouts","total","enabled","reason"],"properties":{
  "checkouts":{"type":"array","items":{"$ref":"#/components/schemas/Checkout"}},
  "total":{"type":"integer"},
  "enabled":{"type":"boolean","description":"whether this server keeps checkouts"},
  "reason":{"type":"string","description":"why it does not"}}})";

json::object Encode(const work::KeptCheckout& row) {
  json::object shown{{"id", row.id},
                     {"owner_id", row.owner_id},
                     {"repo_url", row.repository},
                     {"template", row.template_name},
                     {"depth", row.depth},
                     {"snapshot", row.snapshot},
                     {"bytes", row.bytes},
                     {"uses", row.uses},
                     {"seconds_between_uses", nullptr},
                     {"made_at", FormatTime(row.made_at)},
                     {"last_used_at", FormatTime(row.last_used_at)}};
  if (row.gap_s >= 0) shown["seconds_between_uses"] = row.gap_s;
  return shown;
}

Answer List(work::KeptCheckouts& kept, Call& call) {
  CO_TRY_ASSIGN(auto listed, co_await kept.List(call.owner(), PageOf(call)));
  json::array items;
  for (const work::KeptCheckout& row : listed.items) items.push_back(Encode(row));
  std::string why_off = kept.WhyOff();
  co_return http::Response::Json(200, json::object{{"checkouts", std::move(items)},
                                                   {"total", listed.total},
                                                   {"enabled", why_off.empty()},
                                                   {"reason", why_off}});
}

Answer Delete(work::KeptCheckouts& kept, Call& call) {
  CO_TRY(co_await kept.Remove(call.owner(), call.params.at("id")));
  co_return http::Response::Empty(204);
}

}  // namespace

void AddCheckoutRoutes(Frame& frame, work::KeptCheckouts& kept) {
  frame.AddSchema("Checkout", kCheckout);
  frame.AddSchema("CheckoutList", kCheckoutList);
  frame.Add({.method = "GET",
             .pattern = "/api/v1/checkouts",
             .tag = "tasks",
             .id = "listCheckouts",
             .summary = "Checkouts that are kept for the next task, last used first",
             .access = Access::kViewer,
             .parameters = WithPage({kAllParameter}),
             .responses = {{200, "CheckoutList"}},
             .handler = [&kept](Call& call) { return List(kept, call); }});
  frame.Add({.method = "DELETE",
             .pattern = "/api/v1/checkouts/{id}",
             .tag = "tasks",
             .id = "deleteCheckout",
             .summary = "Do not keep a checkout any longer: the next task clones",
             .parameters = {kAllParameter},
             .responses = {{204, ""}},
             .handler = [&kept](Call& call) { return Delete(kept, call); }});
}

}  // namespace caisson::api

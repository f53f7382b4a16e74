// Handlers of what puts sandboxes away and copies them: pause, resume, snapshots, forks.
#include <boost/json.hpp>

#include "e2b/answer.h"
#include "e2b/api.h"
#include "e2b/fields.h"
#include "e2b/listing.h"

namespace caisson::e2b {
namespace {

namespace json = boost::json;

}  // namespace

Api::Answer Api::Pause(Call call) {
  CO_TRY_ASSIGN(sandbox::Info info, Find(call));
  CO_TRY_ASSIGN(auto body, co_await ReadBody(call.exchange, /*optional=*/true));
  CO_TRY_ASSIGN(auto query, DecodePause(body));
  CO_TRY(co_await manager_.Pause(call.key_id, info.id, query.memory, query.healthy));
  co_return http::Response::Empty(204);
}

Api::Answer Api::Resume(Call call) {
  CO_TRY_ASSIGN(sandbox::Info info, Find(call));
  CO_TRY_ASSIGN(auto body, co_await ReadBody(call.exchange, /*optional=*/true));
  CO_TRY_ASSIGN(auto options, DecodeResume(body, DefaultsOf(call.key_id)));
  auto resumed = co_await manager_.Resume(call.key_id, info.id, options);
  if (!resumed) co_return StartError(resumed.error());
  co_return http::Response::Json(201, EncodeSandbox(*resumed, domain_));
}

Api::Answer Api::Fork(Call call) {
  CO_TRY_ASSIGN(sandbox::Info info, Find(call));
  CO_TRY_ASSIGN(auto body, co_await ReadBody(call.exchange, /*optional=*/true));
  CO_TRY_ASSIGN(auto query, DecodeFork(body, DefaultsOf(call.key_id)));
  CO_TRY_ASSIGN(auto forks,
                co_await manager_.Fork(call.key_id, info.id, query.timeout, query.count));
  json::array list;
  for (const Result<sandbox::Info>& fork : forks) {
    if (fork)
      list.push_back(json::object{{"sandbox", EncodeSandbox(*fork, domain_)}});
    else
      list.push_back(json::object{{"error", json::parse(StartError(fork.error()).body)}});
  }
  co_return http::Response::Json(201, list);
}

Api::Answer Api::MakeSnapshot(Call call) {
  CO_TRY_ASSIGN(sandbox::Info info, Find(call));
  CO_TRY_ASSIGN(auto body, co_await ReadBody(call.exchange, /*optional=*/true));
  CO_TRY_ASSIGN(auto name, TakeString(body, "name"));
  CO_TRY_ASSIGN(auto memory, TakeBool(body, "memory"));
  // Whoever sends the name as the key, too, wants one snapshot of that name however often it asks.
  auto key = call.exchange.request().headers.Get("Idempotency-Key");
  sandbox::SnapshotOptions options{.name = name.value_or(""),
                                   .memory = memory.value_or(true),
                                   .once = name && key && *key == *name};
  CO_TRY_ASSIGN(auto row, co_await manager_.MakeSnapshot(call.key_id, info.id, std::move(options)));
  co_return http::Response::Json(201, EncodeSnapshot(row));
}

Api::Answer Api::ListSnapshots(Call call) {
  http::Query query = call.query();
  sandbox::SnapshotFilter filter{.key_id = call.key_id,
                                 .name = std::string(query.Get("name").value_or(""))};
  if (auto text = query.Get("sandboxID"); text && !text->empty()) {
    // An id that nothing can have is one that nothing has.
    filter.sandbox_id = DecodeSandboxId(*text).value_or("-");
  }
  CO_TRY_ASSIGN(PageQuery page, DecodePageQuery(query));
  json::array list;
  std::string next_token;
  const store::SnapshotRow* last = nullptr;
  auto rows = manager_.ListSnapshots(filter);
  for (const store::SnapshotRow& row : rows) {
    if (page.after && !page.after->IsBefore(row.created_at, row.id)) continue;
    if (list.size() == page.limit) {
      next_token = EncodeCursor({last->created_at, last->id});
      break;
    }
    last = &row;
    list.push_back(EncodeSnapshot(row));
  }
  http::Response response = http::Response::Json(200, list);
  if (!next_token.empty()) response.headers.Set("X-Next-Token", next_token);
  co_return response;
}

}  // namespace caisson::e2b

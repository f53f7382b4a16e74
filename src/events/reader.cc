#include "events/reader.h"

#include <algorithm>

namespace caisson::events {

store::Select<Event> SelectOf(const Filter& filter) {
  store::Select<Event> select;
  if (!filter.owner_id.empty()) select.Eq(&Event::owner_id, filter.owner_id);
  auto in = [&](std::string Event::* field, const std::vector<std::string>& ids) {
    if (!ids.empty()) select.In(field, ids);
  };
  in(&Event::agent_id, filter.agent_ids);
  in(&Event::squad_id, filter.squad_ids);
  in(&Event::task_id, filter.task_ids);
  in(&Event::execution_id, filter.execution_ids);
  in(&Event::run_id, filter.run_ids);
  in(&Event::sandbox_id, filter.sandbox_ids);
  in(&Event::session_id, filter.session_ids);
  in(&Event::build_id, filter.build_ids);
  in(&Event::type, filter.types);
  return select;
}

Task<Result<std::vector<Event>>> Reader::Page(PageQuery query) {
  return store_.Read([this, query = std::move(query)](store::Transaction& transaction) {
    return Read(transaction, query);
  });
}

Task<Status> Reader::Visit(PageQuery query, std::function<void(const std::vector<Event>&)> visit) {
  return store_.Read([this, query = std::move(query),
                      visit = std::move(visit)](store::Transaction& transaction) -> Status {
    TRY_ASSIGN(auto events, Read(transaction, query));
    visit(events);
    return {};
  });
}

Result<std::vector<Event>> Reader::Read(store::Transaction& transaction, const PageQuery& query) {
  auto select = SelectOf(query.filter)
                    .Greater(&Event::id, query.after)
                    .Less(&Event::id, query.before)
                    .Order(&Event::id, query.newest)
                    .Limit(static_cast<int64_t>(query.limit));
  for (const std::string& type : query.not_types) select.NotEq(&Event::type, type);
  TRY_ASSIGN(auto events, transaction.List(select));
  if (query.newest) std::ranges::reverse(events);
  archive_.Restore(events);
  return events;
}

}  // namespace caisson::events

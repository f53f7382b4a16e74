#include "work/loop_record.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/id.h"
#include "work/costs.h"
#include "work/json_fields.h"

namespace caisson::work {
namespace {

using store::AgentLoopRow;
using store::AgentTurnRow;
using store::Select;
using store::Transaction;

Status InsertAll(Transaction& tx, Platform& platform, const std::vector<AgentTurnRow>& rows,
                 const std::vector<Turn>& turns) {
  for (const AgentTurnRow& row : rows) TRY(tx.Insert(row));
  for (const Turn& turn : turns)
    if (turn.cost) TRY(RecordCost(tx, platform, *turn.cost));
  return {};
}

// SECURITY: what is stored and told has none of the server's secrets.
std::vector<AgentTurnRow> RowsOf(const events::Redactor& redactor, const std::string& loop_id,
                                 size_t seq, const std::vector<Turn>& turns) {
  std::vector<AgentTurnRow> rows;
  for (const Turn& turn : turns) {
    std::string output;
    for (const json::object& line : turn.output) output += json::serialize(line) + "\n";
    rows.push_back({.id = fmt::format("{}:{}", loop_id, seq),
                    .loop_id = loop_id,
                    .seq = static_cast<int64_t>(seq),
                    .message = redactor.Redact(json::serialize(turn.message)),
                    .output = redactor.Redact(output),
                    .created_at = Now()});
    ++seq;
  }
  return rows;
}

Result<std::vector<AgentLoopRow>> OpenLoops(Transaction& tx, const std::string& execution_id,
                                            const std::string& sandbox_id) {
  TRY_ASSIGN(auto loops, tx.List(Select<AgentLoopRow>()
                                     .Eq(&AgentLoopRow::execution_id, execution_id)
                                     .Eq(&AgentLoopRow::sandbox_id, sandbox_id)));
  std::erase_if(loops, [](const AgentLoopRow& row) { return row.closed_at.has_value(); });
  return loops;
}

ToolCall CallOf(const json::object& object) {
  const json::object& function = ObjectIn(object, "function");
  return {.id = TextOf(object, "id"),
          .name = TextOf(function, "name"),
          .arguments = TextOf(function, "arguments")};
}

}  // namespace

Task<Status> LoopRecord::Open(AgentLoopRow fresh, std::vector<Turn> first) {
  fresh.id = RandomUuid();
  fresh.created_at = fresh.updated_at = Now();
  auto rows = RowsOf(platform_.log.redactor(), fresh.id, 0, first);
  bool found = false;
  AgentLoopRow row;
  CO_TRY(co_await platform_.store.Write([&](Transaction& tx) -> Status {
    TRY_ASSIGN(auto loops, OpenLoops(tx, fresh.execution_id, fresh.sandbox_id));
    auto old = std::ranges::find(loops, fresh.prompt_hash, &AgentLoopRow::prompt_hash);
    found = old != loops.end();
    row = found ? *old : fresh;
    if (found) {
      TRY_ASSIGN(
          rows,
          tx.List(
              Select<AgentTurnRow>().Eq(&AgentTurnRow::loop_id, row.id).Order(&AgentTurnRow::seq)));
      return {};
    }
    TRY(tx.Insert(fresh));
    return InsertAll(tx, platform_, rows, first);
  }));
  row_ = std::move(row);
  found_ = found;
  for (const AgentTurnRow& turn : rows) Take(ParseObject(turn.message), turn);
  co_return Status();
}

Task<Status> LoopRecord::Add(std::vector<Turn> turns, std::string phase,
                             const json::object& state) {
  AgentLoopRow next = row_;
  next.phase = std::move(phase);
  next.state = platform_.log.redactor().Redact(json::serialize(state));
  next.updated_at = Now();
  auto rows = RowsOf(platform_.log.redactor(), next.id, messages_.size(), turns);
  CO_TRY(co_await platform_.store.Write([&](Transaction& tx) -> Status {
    TRY(tx.Update(next));
    return InsertAll(tx, platform_, rows, turns);
  }));
  row_ = std::move(next);
  // What is cut out of the database is not cut out of the files that the agent writes.
  for (size_t i = 0; i < rows.size(); ++i) Take(std::move(turns[i].message), rows[i]);
  co_return Status();
}

void LoopRecord::Take(json::object message, const AgentTurnRow& row) {
  messages_.push_back(std::move(message));
  bytes_ += row.message.size();
  if (on_output_ && !row.output.empty()) on_output_(sdk::Stream::kStdout, row.output);
}

std::vector<ToolCall> LoopRecord::OpenCalls() const {
  auto asked = std::ranges::find_if(messages_.rbegin(), messages_.rend(), [](const auto& message) {
    return TextOf(message.as_object(), "role") == "assistant";
  });
  std::vector<ToolCall> calls;
  if (asked == messages_.rend()) return calls;
  for (const json::value& call : ArrayIn(asked->as_object(), "tool_calls"))
    if (call.is_object()) calls.push_back(CallOf(call.get_object()));
  auto answered = static_cast<size_t>(asked - messages_.rbegin());
  calls.erase(calls.begin(),
              calls.begin() + static_cast<ptrdiff_t>(std::min(answered, calls.size())));
  return calls;
}

Status CloseLoops(Transaction& tx, const std::string& execution_id, const std::string& sandbox_id) {
  TRY_ASSIGN(auto loops, OpenLoops(tx, execution_id, sandbox_id));
  for (AgentLoopRow& row : loops) {
    row.closed_at = Now();
    TRY(tx.Update(row));
  }
  return {};
}

}  // namespace caisson::work

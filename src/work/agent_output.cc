#include "work/agent_output.h"

#include <boost/json/serialize.hpp>

#include "work/json_fields.h"

namespace caisson::work {
namespace {

using store::EventRow;
using store::Select;

constexpr size_t kMaxText = 8'000;
// Pieces of the two streams may stand in the log in any order, but never far from each other.
constexpr int64_t kLookBack = 200;

}  // namespace

Result<OutputPosition> ToldOutput(store::Transaction& tx, const std::string& execution_id,
                                  const std::string& sandbox_id) {
  TRY_ASSIGN(auto events, tx.List(Select<EventRow>()
                                      .Eq(&EventRow::execution_id, execution_id)
                                      .Eq(&EventRow::sandbox_id, sandbox_id)
                                      .Eq(&EventRow::type, "command_output")
                                      .Order(&EventRow::id, true)
                                      .Limit(kLookBack)));
  OutputPosition position;
  for (const EventRow& event : events) {
    json::object data = ParseObject(event.data);
    int64_t& end = TextOf(data, "stream") == "stderr" ? position.stderr_end : position.stdout_end;
    end = std::max(end, IntOf(data, "end"));
  }
  return position;
}

AgentOutput::AgentOutput(Platform& platform, const Adapter& adapter, OutputPosition told,
                         MakeEvent make_event, Listener listener)
    : platform_(platform),
      parser_(adapter.MakeParser()),
      told_(told),
      make_event_(std::move(make_event)),
      listener_(std::move(listener)) {}

void AgentOutput::Take(sdk::Stream stream, std::string_view piece) {
  bool out = stream == sdk::Stream::kStdout;
  int64_t known = out ? told_.stdout_end - seen_.stdout_end : told_.stderr_end - seen_.stderr_end;
  if (known > 0 && known < static_cast<int64_t>(piece.size())) {
    TakePart(stream, piece.substr(0, static_cast<size_t>(known)));
    piece.remove_prefix(static_cast<size_t>(known));
  }
  TakePart(stream, piece);
}

void AgentOutput::TakePart(sdk::Stream stream, std::string_view piece) {
  bool out = stream == sdk::Stream::kStdout;
  int64_t& seen = out ? seen_.stdout_end : seen_.stderr_end;
  int64_t told = out ? told_.stdout_end : told_.stderr_end;
  // What is parsed comes from the first byte on: the report is about all of it.
  std::vector<AgentEvent> events = parser_->Feed(stream, piece);
  int64_t start = seen;
  seen += static_cast<int64_t>(piece.size());
  bool known = seen <= told;
  if (!known)
    Gather("command_output", {{"output", piece},
                              {"stream", out ? "stdout" : "stderr"},
                              {"offset", start},
                              {"end", seen}});
  for (const AgentEvent& event : events) {
    if (listener_) listener_(event);
    if (!known) Tell(event);
  }
}

AgentReport AgentOutput::Finish() { return parser_->Finish(); }

void AgentOutput::Tell(const AgentEvent& event) {
  switch (event.kind) {
    case AgentEvent::Kind::kDelta:
      return;  // is for the listener; the log gets the whole
    case AgentEvent::Kind::kMessage:
      return Gather("message", {{"message", Shorten(event.text, kMaxText)}});
    case AgentEvent::Kind::kError:
      return Gather("error", {{"message", Shorten(event.text, kMaxText)}});
    case AgentEvent::Kind::kTool: {
      std::string input = json::serialize(event.input);
      if (input.size() <= kMaxText)
        return Gather("agent_tool", {{"tool", event.name}, {"input", event.input}});
      return Gather("agent_tool",
                    {{"tool", event.name}, {"input", {{"cut", Shorten(input, kMaxText)}}}});
    }
    case AgentEvent::Kind::kOther:
      return Gather(event.name, event.input);
    case AgentEvent::Kind::kFile:
      return Gather("file_changed", {{"path", event.name},
                                     {"change", event.change.empty() ? "modified" : event.change}});
  }
}

void AgentOutput::Gather(std::string type, json::object data) {
  platform_.log.Gather(make_event_(std::move(type), std::move(data)));
}

}  // namespace caisson::work

// The output of an agent as events, without holes or doubles over restarts of the server.
#pragma once

#include <functional>

#include "store/event_row.h"
#include "work/adapter.h"
#include "work/platform.h"

namespace caisson::work {

// How much of each stream is in the event log.
struct OutputPosition {
  int64_t stdout_end = 0, stderr_end = 0;
};
// From the newest events of the execution. Output is given from its beginning at every attempt to
// follow an agent; what was told before this position is not told again.
// A new sandbox has a new agent, whose output is told from its beginning.
Result<OutputPosition> ToldOutput(store::Transaction& tx, const std::string& execution_id,
                                  const std::string& sandbox_id);

class AgentOutput {
 public:
  // Makes an event with the ids of what the agent works on.
  using MakeEvent = std::function<store::EventRow(std::string type, json::object data)>;
  // Gets everything the agent says and does, from the beginning at every attempt.
  using Listener = std::function<void(const AgentEvent& event)>;

  // All outlive it.
  AgentOutput(Platform& platform, const Adapter& adapter, OutputPosition told, MakeEvent make_event,
              Listener listener = {});
  void Take(sdk::Stream stream, std::string_view piece);
  AgentReport Finish();

 private:
  // A piece that is wholly in the event log, or wholly not.
  void TakePart(sdk::Stream stream, std::string_view piece);
  void Tell(const AgentEvent& event);
  void Gather(std::string type, json::object data);

  Platform& platform_;
  std::unique_ptr<OutputParser> parser_;
  OutputPosition told_, seen_;
  MakeEvent make_event_;
  Listener listener_;
};

}  // namespace caisson::work

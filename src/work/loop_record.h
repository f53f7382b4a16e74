// The checkpoint of the built-in agent: what it said and was told, in the database after every
// turn. A server that is started again goes on from there.
#pragma once

#include "sdk/envd_client.h"
#include "store/loop_rows.h"
#include "store/work_rows.h"
#include "work/loop_guard.h"
#include "work/platform.h"

namespace caisson::work {

// What happened since the last checkpoint.
struct Turn {
  json::object message;
  std::vector<json::object> output;    // lines that the adapter's parser reads
  std::optional<store::CostRow> cost;  // of the model's answer
};

class LoopRecord {
 public:
  // `platform` and `on_output` outlive it.
  using OnOutput = std::function<void(sdk::Stream, std::string_view)>;
  LoopRecord(Platform platform, const OnOutput& on_output)
      : platform_(platform), on_output_(on_output) {}

  // Finds the open one of the same execution, sandbox and prompt, and gives all its output again;
  // or makes it with these turns.
  Task<Status> Open(store::AgentLoopRow fresh, std::vector<Turn> first);
  // In one transaction, then told.
  Task<Status> Add(std::vector<Turn> turns, std::string phase, const json::object& state);

  bool found() const { return found_; }  // it was there before
  const std::string& id() const { return row_.id; }
  const std::string& phase() const { return row_.phase; }
  const std::string& state() const { return row_.state; }
  const json::array& messages() const { return messages_; }
  size_t bytes() const { return bytes_; }
  // Of the last answer of the model: those without a result.
  std::vector<ToolCall> OpenCalls() const;

 private:
  void Take(json::object message, const store::AgentTurnRow& row);

  Platform platform_;
  const OnOutput& on_output_;
  store::AgentLoopRow row_;
  json::array messages_;
  size_t bytes_ = 0;
  bool found_ = false;
};

// Those of an execution in a sandbox: the next run starts anew.
Status CloseLoops(store::Transaction& tx, const std::string& execution_id,
                  const std::string& sandbox_id);

}  // namespace caisson::work

// Agent adapters: how a program that writes code is started with a task, and what its output means.
// One per program; docs/agents.md tells what each runs.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "sdk/envd_client.h"

namespace caisson::work {

namespace json = boost::json;

// What an agent shall do.
struct AgentJob {
  json::object config;  // of the agent, checked by CheckAgentConfig()
  std::string title, description;
  std::string feedback;  // what a reviewer asks for, "" the first time
  std::string prompt;    // the whole text, if it shall not be made of those above
  std::string task_id, execution_id;
  std::string workdir;
  std::chrono::seconds timeout{3600};
  bool partial = false;  // somebody reads along: messages shall come in pieces, if it can do that
  // Names of the model routes that this server has, and where the sandbox reaches them.
  std::vector<std::string> model_routes;
  std::function<std::string(const std::string& route)> model_url;
};

// What an agent has said or done.
struct AgentEvent {
  // A message may come in pieces (kDelta) before it comes as a whole.
  enum class Kind { kMessage, kDelta, kTool, kFile, kError, kOther } kind = Kind::kMessage;
  std::string text;    // of a message, a piece of one, or an error
  std::string name;    // the tool; the path of a file; the type of any other event
  std::string change;  // of a file: "added", "modified", "deleted"
  json::object input;  // of a tool; the data of any other event
  bool first = false;  // of a piece: the message begins with it
};

struct Usage {
  std::string model;
  int64_t tokens_in = 0, tokens_out = 0;
  double dollars = 0;
  bool recorded = false;  // every call of the model has an entry of its own
};

// What is known at the end.
struct AgentReport {
  std::string summary;  // its last word, bounded
  std::string error;    // why it failed by its own account, "" if it did not say so
  Usage usage;
  std::optional<Time> sleeps_until;  // it has not ended: it goes on then
};

// Reads the output of one run. Never fails: what it does not understand it leaves out.
class OutputParser {
 public:
  virtual ~OutputParser() = default;
  // Pieces as they come, cut anywhere.
  virtual std::vector<AgentEvent> Feed(sdk::Stream stream, std::string_view piece) = 0;
  // The output is complete.
  virtual AgentReport Finish() = 0;
};

class Adapter {
 public:
  virtual ~Adapter() = default;
  // kFailedPrecondition: it needs a model route that this server does not have.
  virtual Result<sdk::Command> MakeCommand(const AgentJob& job) const = 0;
  virtual std::unique_ptr<OutputParser> MakeParser() const = 0;
  // Files that it leaves in the checkout and that are not work: pathspecs to leave out.
  virtual std::vector<std::string> Litter() const { return {}; }
};

// Null if there is none of that name, or it does not run here ("external").
const Adapter* FindAdapter(std::string_view name);

// The text that an agent gets: the task, the feedback, the agent's own instructions.
std::string Prompt(const AgentJob& job);

}  // namespace caisson::work

// What ends the built-in agent before its model does: too many calls, the same call again and
// again, failures, money. All that is remembered for it goes into one small JSON object.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace caisson::work {

namespace json = boost::json;

// From the agent's configuration; docs/agents.md.
struct LoopLimits {
  int64_t tool_calls = 150;
  int64_t repeats = 3;   // of the same call within the last ten
  int64_t failures = 3;  // of tools, one after the other
  int64_t tries = 3;     // different ones that end in the same error
  std::chrono::seconds tool_timeout{30};
  std::chrono::seconds bash_timeout{600};  // the most that a model may ask for
  double dollars = 0;                      // 0 = no limit
  double price_in = 0, price_out = 0;      // dollars per million tokens
};
LoopLimits LimitsOf(const json::object& config);

struct ToolCall {
  std::string id, name;
  std::string arguments;  // JSON, as the model wrote it
  // In a few words, without the content of files.
  std::string InShort() const;
};

struct ToolOutcome {
  std::string text;        // for the model
  std::string error_type;  // "" = it went well; "exit" = a command ended with another status than 0
  std::string error;       // what the signature is made of
  std::string said;        // by narrate
  std::string changed;     // the path of a file
  json::array plan;        // by update_plan
};

// Why the agent stopped, for a person.
struct Escalation {
  std::string problem;
  std::vector<std::string> tried;
  std::string recommended_action;
  std::string state = "stuck";  // of the agent from now on; or "budget_exceeded"
};

class LoopGuard {
 public:
  LoopGuard(LoopLimits limits, json::object state);

  // A call is about to be made: why it must not be.
  std::optional<Escalation> Before(const ToolCall& call);
  // It was made: why it shall be the last.
  std::optional<Escalation> After(const ToolCall& call, const ToolOutcome& outcome);
  // The model was asked.
  void Count(int64_t tokens_in, int64_t tokens_out);
  std::optional<Escalation> CheckMoney() const;

  double DollarsOf(int64_t tokens_in, int64_t tokens_out) const;
  // It has nothing to spend until then; SleepsUntil() is "" once it is awake again.
  void Sleep(const std::string& until);
  void Wake();
  std::string SleepsUntil() const;
  int64_t calls() const;
  const json::object& state() const { return state_; }

 private:
  Escalation Stop(std::string problem, std::string action) const;

  LoopLimits limits_;
  json::object state_;
};

}  // namespace caisson::work

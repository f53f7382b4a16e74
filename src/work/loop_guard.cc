#include "work/loop_guard.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/error.h"
#include "work/json_fields.h"
#include "work/loop_text.h"

namespace caisson::work {
namespace {

constexpr size_t kRecent = 10;       // calls that are remembered
constexpr size_t kSignatures = 100;  // the oldest is forgotten
constexpr size_t kMaxShort = 160;
constexpr double kMillion = 1'000'000;

// What a call is remembered by.
std::string KeyOf(const ToolCall& call) { return ShortHash(call.name + " " + call.arguments); }

json::array& ArrayAt(json::object& object, std::string_view name) {
  json::value& value = object[name];
  if (!value.is_array()) value = json::array();
  return value.get_array();
}

json::object& ObjectAt(json::object& object, std::string_view name) {
  json::value& value = object[name];
  if (!value.is_object()) value = json::object();
  return value.get_object();
}

void Remember(json::array& list, const std::string& one) {
  list.emplace_back(one);
  if (list.size() > kRecent) list.erase(list.begin());
}

}  // namespace

LoopLimits LimitsOf(const json::object& config) {
  LoopLimits limits;
  auto set = [&](std::string_view name, int64_t& limit) {
    if (int64_t value = IntOf(config, name); value > 0) limit = value;
  };
  set("max_tool_calls", limits.tool_calls);
  set("max_repeats", limits.repeats);
  set("max_failures", limits.failures);
  set("max_tries", limits.tries);
  int64_t tool = limits.tool_timeout.count(), bash = limits.bash_timeout.count();
  set("tool_timeout_s", tool);
  set("bash_timeout_s", bash);
  limits.tool_timeout = std::chrono::seconds(tool);
  limits.bash_timeout = std::chrono::seconds(std::max(tool, bash));
  limits.dollars = NumberOf(config, "max_dollars");
  limits.price_in = NumberOf(config, "price_in");
  limits.price_out = NumberOf(config, "price_out");
  return limits;
}

std::string ToolCall::InShort() const {
  json::object input = ParseObject(arguments);
  for (std::string_view field : {"path", "command", "pattern", "url"})
    if (std::string value = TextOf(input, field); !value.empty())
      return Shorten(fmt::format("{} {}", name, value), kMaxShort);
  return Shorten(name, kMaxShort);
}

LoopGuard::LoopGuard(LoopLimits limits, json::object state)
    : limits_(limits), state_(std::move(state)) {}

int64_t LoopGuard::calls() const { return IntOf(state_, "calls"); }

void LoopGuard::Sleep(const std::string& until) { state_["sleeps_until"] = until; }

void LoopGuard::Wake() { state_.erase("sleeps_until"); }

std::string LoopGuard::SleepsUntil() const { return TextOf(state_, "sleeps_until"); }

Escalation LoopGuard::Stop(std::string problem, std::string action) const {
  return {std::move(problem), TextsOf(state_, "tried"), std::move(action)};
}

std::optional<Escalation> LoopGuard::Before(const ToolCall& call) {
  if (calls() >= limits_.tool_calls)
    return Stop(fmt::format("the agent has used its {} tool calls", limits_.tool_calls),
                "make the task smaller, or raise max_tool_calls of the agent");
  json::array& recent = ArrayAt(state_, "recent");
  std::string key = KeyOf(call);
  if (std::ranges::count(recent, json::value(key)) + 1 >= limits_.repeats)
    return Stop(fmt::format("the agent repeats itself: {}", call.InShort()),
                "look at what the call says, and tell the agent what to do differently");
  Remember(recent, key);
  state_["calls"] = calls() + 1;
  Remember(ArrayAt(state_, "tried"), call.InShort());
  return std::nullopt;
}

std::optional<Escalation> LoopGuard::After(const ToolCall& call, const ToolOutcome& outcome) {
  // A command that ends with a status is an answer, not a failure of the tool.
  bool failed = !outcome.error_type.empty() && outcome.error_type != "exit";
  state_["failures"] = failed ? IntOf(state_, "failures") + 1 : 0;
  // An end without words has nothing to be known by.
  if (outcome.error.empty()) return std::nullopt;
  json::object& errors = ObjectAt(state_, "errors");
  std::string signature = ErrorSignature(outcome.error_type, outcome.error);
  if (errors.size() >= kSignatures && !errors.contains(signature))
    errors.stable_erase(errors.begin());
  json::array& tries = ArrayAt(errors, signature);
  if (json::value key(KeyOf(call)); std::ranges::find(tries, key) == tries.end())
    tries.push_back(std::move(key));
  std::string words = Shorten(outcome.error, kMaxShort);
  if (static_cast<int64_t>(tries.size()) >= limits_.tries)
    return Stop(fmt::format("{} different tries ended in the same error ({}): {}", tries.size(),
                            signature, words),
                "mend what the error names, or tell the agent how");
  if (IntOf(state_, "failures") >= limits_.failures)
    return Stop(fmt::format("{} tool calls failed one after the other, the last with: {}",
                            limits_.failures, words),
                "see whether the sandbox has what the task needs");
  return std::nullopt;
}

double LoopGuard::DollarsOf(int64_t tokens_in, int64_t tokens_out) const {
  return (static_cast<double>(tokens_in) * limits_.price_in +
          static_cast<double>(tokens_out) * limits_.price_out) /
         kMillion;
}

void LoopGuard::Count(int64_t tokens_in, int64_t tokens_out) {
  state_["questions"] = IntOf(state_, "questions") + 1;
  state_["dollars"] = NumberOf(state_, "dollars") + DollarsOf(tokens_in, tokens_out);
}

std::optional<Escalation> LoopGuard::CheckMoney() const {
  double spent = NumberOf(state_, "dollars");
  if (limits_.dollars <= 0 || spent < limits_.dollars) return std::nullopt;
  return Stop(fmt::format("the agent has spent ${:.4f} of ${:.4f}", spent, limits_.dollars),
              "make the task smaller, or raise max_dollars of the agent");
}

}  // namespace caisson::work

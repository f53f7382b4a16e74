// The built-in agent: its program is the server's own loop, not one in the sandbox.
#include <boost/json/serialize.hpp>

#include "work/adapters.h"
#include "work/agent_loop.h"
#include "work/command_parser.h"
#include "work/json_fields.h"

namespace caisson::work {
namespace {

// What any program may say, and events of the agent's own.
class BuiltinParser final : public CommandParser {
 public:
  AgentReport Finish() override {
    AgentReport report = CommandParser::Finish();
    report.usage.recorded = true;
    report.sleeps_until = sleeps_until_;
    return report;
  }

 protected:
  void Object(const json::object& object) override {
    // Whatever comes after it is said by one that is awake.
    sleeps_until_.reset();
    if (TextOf(object, "caisson") != "event") return CommandParser::Object(object);
    if (TextOf(object, "type") == "agent.sleeping")
      if (auto until = ParseTime(TextOf(ObjectIn(object, "data"), "until"))) sleeps_until_ = *until;
    Emit({.kind = AgentEvent::Kind::kOther,
          .name = TextOf(object, "type"),
          .input = ObjectIn(object, "data")});
  }

 private:
  std::optional<Time> sleeps_until_;
};

class BuiltinAdapter final : public Adapter {
 public:
  Result<sdk::Command> MakeCommand(const AgentJob& job) const override {
    sdk::Command command = BaseCommand(job);
    command.argv = {std::string(kBuiltinProgram), json::serialize(job.config)};
    command.stdin_text = Prompt(job);
    Complete(command, job);
    return command;
  }
  std::unique_ptr<OutputParser> MakeParser() const override {
    return std::make_unique<BuiltinParser>();
  }
};

}  // namespace

std::unique_ptr<Adapter> MakeBuiltinAdapter() { return std::make_unique<BuiltinAdapter>(); }

}  // namespace caisson::work

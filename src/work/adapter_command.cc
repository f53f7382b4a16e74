// Any program: its command line with placeholders, the task on standard input and in CAISSON_TASK.
#include "work/adapters.h"
#include "work/agent_loop.h"
#include "work/command_parser.h"
#include "work/json_fields.h"

namespace caisson::work {
namespace {

std::string Fill(std::string text, const AgentJob& job, const std::string& prompt) {
  struct Mark {
    std::string_view mark;
    const std::string& value;
  };
  const Mark marks[] = {{"{task}", prompt}, {"{title}", job.title}, {"{workdir}", job.workdir}};
  std::string filled;
  for (size_t i = 0; i < text.size();) {
    const Mark* found = nullptr;
    for (const Mark& one : marks)
      if (text.compare(i, one.mark.size(), one.mark) == 0) found = &one;
    filled += found ? std::string_view(found->value) : std::string_view(text).substr(i, 1);
    i += found ? found->mark.size() : 1;
  }
  return filled;
}

class CommandAdapter : public Adapter {
 public:
  Result<sdk::Command> MakeCommand(const AgentJob& job) const override {
    sdk::Command command = BaseCommand(job);
    std::string prompt = Prompt(job);
    for (std::string& part : TextsOf(job.config, "command"))
      command.argv.push_back(Fill(std::move(part), job, prompt));
    // SECURITY: what the server runs itself is configured, and checked, as another adapter.
    if (AgentLoop::Runs(command))
      return Fail(Code::kInvalidArgument, "the built-in agent has the adapter builtin");
    command.stdin_text = prompt;
    // A program that talks to models finds the ways there by name.
    if (TextOf(job.config, "model_keys") != "environment")
      for (const std::string& route : job.model_routes)
        command.env["CAISSON_MODEL_URL_" + route] = job.model_url(route);
    Complete(command, job);
    return command;
  }
  std::unique_ptr<OutputParser> MakeParser() const override {
    return std::make_unique<CommandParser>();
  }
};

}  // namespace

void CommandParser::Object(const json::object& object) {
  std::string kind = TextOf(object, "caisson");
  if (kind == "message") {
    Emit({.kind = AgentEvent::Kind::kMessage, .text = TextOf(object, "text")});
  } else if (kind == "summary") {
    report_.summary = TextOf(object, "text");
  } else if (kind == "error") {
    report_.error = TextOf(object, "text");
    Emit({.kind = AgentEvent::Kind::kError, .text = report_.error});
  } else if (kind == "tool") {
    Emit({.kind = AgentEvent::Kind::kTool,
          .name = TextOf(object, "name"),
          .input = ObjectIn(object, "input")});
  } else if (kind == "file") {
    Emit({.kind = AgentEvent::Kind::kFile,
          .name = TextOf(object, "path"),
          .change = TextOf(object, "change")});
  } else if (kind == "usage") {
    if (std::string model = TextOf(object, "model"); !model.empty()) report_.usage.model = model;
    report_.usage.tokens_in += std::max<int64_t>(0, IntOf(object, "tokens_in"));
    report_.usage.tokens_out += std::max<int64_t>(0, IntOf(object, "tokens_out"));
    report_.usage.dollars += std::max(0.0, NumberOf(object, "dollars"));
  }
}

std::unique_ptr<Adapter> MakeCommandAdapter() { return std::make_unique<CommandAdapter>(); }

}  // namespace caisson::work

// Claude Code: `claude -p --output-format stream-json --verbose`, the task on standard input.
#include "work/adapters.h"
#include "work/json_fields.h"
#include "work/line_parser.h"

namespace caisson::work {
namespace {

class ClaudeParser : public JsonLineParser {
 protected:
  void Object(const json::object& object) override {
    std::string type = TextOf(object, "type");
    if (type == "system" && TextOf(object, "subtype") == "init") {
      report_.usage.model = TextOf(object, "model");
    } else if (type == "stream_event") {
      Partial(object);
    } else if (type == "assistant") {
      for (const json::value& part : ArrayIn(ObjectIn(object, "message"), "content"))
        if (part.is_object()) Content(part.as_object());
    } else if (type == "result") {
      End(object);
    }
  }

 private:
  // Pieces of what comes as a whole afterwards. Helpers of the agent speak at the same time: of
  // them only whole messages are taken.
  void Partial(const json::object& object) {
    if (!TextOf(object, "parent_tool_use_id").empty()) return;
    const json::object& event = ObjectIn(object, "event");
    std::string type = TextOf(event, "type");
    if (type == "content_block_start") first_ = true;
    const json::object& delta = ObjectIn(event, "delta");
    if (type == "content_block_delta" && TextOf(delta, "type") == "text_delta")
      Emit({.kind = AgentEvent::Kind::kDelta,
            .text = TextOf(delta, "text"),
            .first = std::exchange(first_, false)});
  }

  void Content(const json::object& part) {
    std::string type = TextOf(part, "type");
    if (type == "text") Say(TextOf(part, "text"));
    if (type != "tool_use") return;
    std::string name = TextOf(part, "name");
    const json::object& input = ObjectIn(part, "input");
    Emit({.kind = AgentEvent::Kind::kTool, .name = name, .input = input});
    // Which tools write files, and what they call the path.
    std::string path = TextOf(input, name == "NotebookEdit" ? "notebook_path" : "file_path");
    if ((name == "Write" || name == "Edit" || name == "MultiEdit" || name == "NotebookEdit") &&
        !path.empty())
      Emit({.kind = AgentEvent::Kind::kFile, .name = path, .change = "modified"});
  }

  void End(const json::object& object) {
    if (std::string text = TextOf(object, "result"); !text.empty()) report_.summary = text;
    if (TrueIn(object, "is_error") || TextOf(object, "subtype").starts_with("error")) {
      report_.error = TextOf(object, "result");
      if (report_.error.empty()) report_.error = "it ended with " + TextOf(object, "subtype");
      Emit({.kind = AgentEvent::Kind::kError, .text = report_.error});
    }
    const json::object& usage = ObjectIn(object, "usage");
    report_.usage.tokens_in = IntOf(usage, "input_tokens") +
                              IntOf(usage, "cache_creation_input_tokens") +
                              IntOf(usage, "cache_read_input_tokens");
    report_.usage.tokens_out = IntOf(usage, "output_tokens");
    report_.usage.dollars = NumberOf(object, "total_cost_usd");
  }

  bool first_ = true;  // the next piece begins a message
};

class ClaudeAdapter : public Adapter {
 public:
  Result<sdk::Command> MakeCommand(const AgentJob& job) const override {
    sdk::Command command = BaseCommand(job);
    // The sandbox is the boundary: asking for permission would only wait for nobody.
    command.argv = {"claude",      "-p",        "--output-format",
                    "stream-json", "--verbose", "--dangerously-skip-permissions"};
    if (job.partial) command.argv.push_back("--include-partial-messages");
    if (std::string model = TextOf(job.config, "model"); !model.empty())
      command.argv.insert(command.argv.end(), {"--model", model});
    if (int64_t turns = IntOf(job.config, "max_turns"); turns > 0)
      command.argv.insert(command.argv.end(), {"--max-turns", std::to_string(turns)});
    command.stdin_text = Prompt(job);
    TRY_ASSIGN(std::string url, ModelUrl(job, "anthropic"));
    if (!url.empty()) {
      command.env["ANTHROPIC_BASE_URL"] = url;
      command.env["ANTHROPIC_API_KEY"] = kDummyKey;
    }
    command.env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1";
    Complete(command, job);
    return command;
  }
  std::unique_ptr<OutputParser> MakeParser() const override {
    return std::make_unique<ClaudeParser>();
  }
};

}  // namespace

std::unique_ptr<Adapter> MakeClaudeAdapter() { return std::make_unique<ClaudeAdapter>(); }

}  // namespace caisson::work

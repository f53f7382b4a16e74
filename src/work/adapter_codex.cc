// Codex: `codex exec --json -`, the task on standard input.
#include "work/adapters.h"
#include "work/json_fields.h"
#include "work/line_parser.h"

namespace caisson::work {
namespace {

class CodexParser : public JsonLineParser {
 protected:
  void Object(const json::object& object) override {
    std::string type = TextOf(object, "type");
    if (type == "item.completed") {
      Item(ObjectIn(object, "item"));
    } else if (type == "turn.completed") {
      const json::object& usage = ObjectIn(object, "usage");
      report_.usage.tokens_in += IntOf(usage, "input_tokens");
      report_.usage.tokens_out += IntOf(usage, "output_tokens");
      report_.error.clear();
    } else if (type == "turn.failed") {
      Failed(TextOf(ObjectIn(object, "error"), "message"));
    } else if (type == "error") {
      Failed(TextOf(object, "message"));
    }
  }

 private:
  void Failed(std::string message) {
    report_.error = message.empty() ? "the turn failed" : message;
    Emit({.kind = AgentEvent::Kind::kError, .text = report_.error});
  }

  void Item(const json::object& item) {
    // Older versions name the kind item_type.
    std::string type = TextOf(item, "type");
    if (type.empty()) type = TextOf(item, "item_type");
    if (type == "agent_message" || type == "assistant_message") {
      Say(TextOf(item, "text"));
    } else if (type == "command_execution") {
      Emit({.kind = AgentEvent::Kind::kTool,
            .name = "command",
            .input = {{"command", TextOf(item, "command")},
                      {"exit_code", IntOf(item, "exit_code")}}});
    } else if (type == "mcp_tool_call") {
      Emit({.kind = AgentEvent::Kind::kTool,
            .name = TextOf(item, "server") + "/" + TextOf(item, "tool")});
    } else if (type == "web_search") {
      Emit({.kind = AgentEvent::Kind::kTool,
            .name = "web_search",
            .input = {{"query", TextOf(item, "query")}}});
    } else if (type == "file_change") {
      for (const json::value& change : ArrayIn(item, "changes"))
        if (change.is_object()) File(change.as_object());
    } else if (type == "error") {
      Emit({.kind = AgentEvent::Kind::kError, .text = TextOf(item, "message")});
    }
  }

  void File(const json::object& change) {
    std::string kind = TextOf(change, "kind");
    Emit({.kind = AgentEvent::Kind::kFile,
          .name = TextOf(change, "path"),
          .change = kind == "add"      ? "added"
                    : kind == "delete" ? "deleted"
                                       : "modified"});
  }
};

class CodexAdapter : public Adapter {
 public:
  Result<sdk::Command> MakeCommand(const AgentJob& job) const override {
    sdk::Command command = BaseCommand(job);
    // Its own sandbox would be a second one inside ours, which the kernel refuses.
    command.argv = {"codex", "exec", "--json", "--skip-git-repo-check",
                    "--dangerously-bypass-approvals-and-sandbox"};
    TRY_ASSIGN(std::string url, ModelUrl(job, "openai"));
    if (!url.empty()) {
      command.argv.insert(
          command.argv.end(),
          {"-c", "model_provider=\"caisson\"", "-c",
           fmt::format("model_providers.caisson={{name=\"Caisson\",base_url=\"{}/v1\","
                       "env_key=\"OPENAI_API_KEY\",wire_api=\"responses\"}}",
                       url)});
      command.env["OPENAI_BASE_URL"] = url + "/v1";
      command.env["OPENAI_API_KEY"] = command.env["CODEX_API_KEY"] = kDummyKey;
    }
    if (std::string model = TextOf(job.config, "model"); !model.empty())
      command.argv.insert(command.argv.end(), {"--model", model});
    Complete(command, job);
    command.argv.emplace_back("-");
    command.stdin_text = Prompt(job);
    return command;
  }
  std::unique_ptr<OutputParser> MakeParser() const override {
    return std::make_unique<CodexParser>();
  }
};

}  // namespace

std::unique_ptr<Adapter> MakeCodexAdapter() { return std::make_unique<CodexAdapter>(); }

}  // namespace caisson::work

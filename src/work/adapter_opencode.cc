// OpenCode: `opencode run --format json TASK`.
#include <boost/json/serialize.hpp>

#include "work/adapters.h"
#include "work/json_fields.h"
#include "work/line_parser.h"

namespace caisson::work {
namespace {

class OpenCodeParser : public JsonLineParser {
 protected:
  void Object(const json::object& object) override {
    std::string type = TextOf(object, "type");
    const json::object& part = ObjectIn(object, "part");
    if (type == "text") {
      Say(TextOf(part, "text"));
    } else if (type == "tool_use") {
      Tool(TextOf(part, "tool"), ObjectIn(ObjectIn(part, "state"), "input"));
    } else if (type == "step_finish") {
      const json::object& tokens = ObjectIn(part, "tokens");
      const json::object& cache = ObjectIn(tokens, "cache");
      report_.usage.tokens_in +=
          IntOf(tokens, "input") + IntOf(cache, "read") + IntOf(cache, "write");
      report_.usage.tokens_out += IntOf(tokens, "output") + IntOf(tokens, "reasoning");
      report_.usage.dollars += NumberOf(part, "cost");
    } else if (type == "error") {
      const json::object& error = ObjectIn(object, "error");
      report_.error = TextOf(ObjectIn(error, "data"), "message");
      if (report_.error.empty()) report_.error = TextOf(error, "name");
      if (report_.error.empty()) report_.error = "it reported an error";
      Emit({.kind = AgentEvent::Kind::kError, .text = report_.error});
    }
  }

 private:
  void Tool(const std::string& name, const json::object& input) {
    Emit({.kind = AgentEvent::Kind::kTool, .name = name, .input = input});
    std::string path = TextOf(input, "filePath");
    if ((name == "write" || name == "edit") && !path.empty())
      Emit({.kind = AgentEvent::Kind::kFile, .name = path, .change = "modified"});
  }
};

class OpenCodeAdapter : public Adapter {
 public:
  Result<sdk::Command> MakeCommand(const AgentJob& job) const override {
    sdk::Command command = BaseCommand(job);
    command.argv = {"opencode", "run", "--format", "json"};
    // "anthropic/claude-...": the part before the slash is the provider, and our route.
    std::string model = TextOf(job.config, "model");
    std::string provider = model.substr(0, model.find('/'));
    if (provider.empty()) provider = "anthropic";
    if (!model.empty()) command.argv.insert(command.argv.end(), {"--model", model});
    json::object settings{{"permission", "allow"}, {"share", "disabled"}, {"autoupdate", false}};
    TRY_ASSIGN(std::string url, ModelUrl(job, provider));
    if (!url.empty())
      settings["provider"] = {
          {provider, {{"options", {{"baseURL", url + "/v1"}, {"apiKey", kDummyKey}}}}}};
    command.env["OPENCODE_CONFIG_CONTENT"] = json::serialize(settings);
    Complete(command, job);
    command.argv.push_back(Prompt(job));
    return command;
  }
  std::unique_ptr<OutputParser> MakeParser() const override {
    return std::make_unique<OpenCodeParser>();
  }
};

}  // namespace

std::unique_ptr<Adapter> MakeOpenCodeAdapter() { return std::make_unique<OpenCodeAdapter>(); }

}  // namespace caisson::work

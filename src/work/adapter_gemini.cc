// Gemini CLI: `gemini --output-format stream-json -p TASK`.
#include "work/adapters.h"
#include "work/json_fields.h"
#include "work/line_parser.h"

namespace caisson::work {
namespace {

class GeminiParser : public JsonLineParser {
 public:
  AgentReport Finish() override {
    EndMessage();
    return JsonLineParser::Finish();
  }

 protected:
  void Object(const json::object& object) override {
    std::string type = TextOf(object, "type");
    // A message comes in pieces; it is over when something else comes.
    if (type == "message" && TextOf(object, "role") == "assistant") {
      Piece(TextOf(object, "content"));
      if (!TrueIn(object, "delta")) EndMessage();
      return;
    }
    EndMessage();
    if (type == "init") {
      report_.usage.model = TextOf(object, "model");
    } else if (type == "tool_use") {
      Tool(TextOf(object, "tool_name"), ObjectIn(object, "parameters"));
    } else if (type == "error") {
      Emit({.kind = AgentEvent::Kind::kError, .text = TextOf(object, "message")});
    } else if (type == "result") {
      End(object);
    }
  }

 private:
  void Piece(std::string text) {
    if (text.empty()) return;
    bool first = message_.empty();
    message_ += text;
    Emit({.kind = AgentEvent::Kind::kDelta, .text = std::move(text), .first = first});
  }
  void EndMessage() { Say(std::exchange(message_, {})); }

  void Tool(const std::string& name, const json::object& input) {
    Emit({.kind = AgentEvent::Kind::kTool, .name = name, .input = input});
    std::string path = TextOf(input, "file_path");
    if ((name == "write_file" || name == "replace") && !path.empty())
      Emit({.kind = AgentEvent::Kind::kFile, .name = path, .change = "modified"});
  }

  void End(const json::object& object) {
    const json::object& stats = ObjectIn(object, "stats");
    report_.usage.tokens_in = IntOf(stats, "input_tokens");
    report_.usage.tokens_out = IntOf(stats, "output_tokens");
    if (TextOf(object, "status") != "error") return;
    report_.error = TextOf(ObjectIn(object, "error"), "message");
    if (report_.error.empty()) report_.error = "it reported an error";
  }

  std::string message_;
};

class GeminiAdapter : public Adapter {
 public:
  Result<sdk::Command> MakeCommand(const AgentJob& job) const override {
    sdk::Command command = BaseCommand(job);
    command.argv = {"gemini", "--output-format", "stream-json", "--approval-mode", "yolo"};
    if (std::string model = TextOf(job.config, "model"); !model.empty())
      command.argv.insert(command.argv.end(), {"--model", model});
    TRY_ASSIGN(std::string url, ModelUrl(job, "google"));
    if (!url.empty()) {
      command.env["GOOGLE_GEMINI_BASE_URL"] = url;
      command.env["GEMINI_API_KEY"] = kDummyKey;
    }
    Complete(command, job);
    command.argv.insert(command.argv.end(), {"-p", Prompt(job)});
    return command;
  }
  std::unique_ptr<OutputParser> MakeParser() const override {
    return std::make_unique<GeminiParser>();
  }
};

}  // namespace

std::unique_ptr<Adapter> MakeGeminiAdapter() { return std::make_unique<GeminiAdapter>(); }

}  // namespace caisson::work

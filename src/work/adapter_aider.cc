// aider: `aider --message TASK --yes-always`. Its output is for people; what it cost stands in a
// line "Tokens: 2.4k sent, 310 received. Cost: $0.01 message, $0.03 session."
#include <cstdlib>

#include "base/text.h"
#include "work/adapters.h"
#include "work/json_fields.h"
#include "work/line_parser.h"

namespace caisson::work {
namespace {

// "950", "2.4k", "1.2M", "12,345".
int64_t Amount(std::string_view text) {
  std::string digits;
  for (char c : text)
    if (c != ',') digits += c;
  char* end = nullptr;
  double value = std::strtod(digits.c_str(), &end);
  if (*end == 'k') value *= 1e3;
  if (*end == 'M') value *= 1e6;
  return value > 0 && value < 1e15 ? static_cast<int64_t>(value + 0.5) : 0;
}

std::string_view WordBefore(std::string_view line, std::string_view word) {
  size_t at = line.find(word);
  if (at == std::string_view::npos || at == 0) return {};
  std::string_view before = Trim(line.substr(0, at));
  return before.substr(before.find_last_of(' ') + 1);
}

class AiderParser : public LineParser {
 public:
  AgentReport Finish() override {
    Say(std::exchange(text_, {}));
    return LineParser::Finish();
  }

 protected:
  void Line(std::string_view line) override {
    line = Trim(line);
    constexpr std::string_view kEdited = "Applied edit to ", kTokens = "Tokens: ";
    if (line.starts_with(kEdited)) {
      Emit({.kind = AgentEvent::Kind::kFile,
            .name = std::string(line.substr(kEdited.size())),
            .change = "modified"});
    } else if (line.starts_with("Model: ") || line.starts_with("Main model: ")) {
      line.remove_prefix(line.find(' ', line.find(':')) + 1);
      report_.usage.model = std::string(line.substr(0, line.find(' ')));
    } else if (line.starts_with(kTokens)) {
      Say(std::exchange(text_, {}));
      report_.usage.tokens_in += Amount(WordBefore(line, " sent"));
      report_.usage.tokens_out += Amount(WordBefore(line, " received"));
      // The sum of the session, so the last one counts.
      if (std::string_view cost = WordBefore(line, " session"); cost.starts_with('$'))
        report_.usage.dollars = std::strtod(std::string(cost.substr(1)).c_str(), nullptr);
    } else if (text_.size() < kMaxSummary) {
      text_ += std::string(line) + "\n";
    }
  }

 private:
  std::string text_;  // since the last message
};

class AiderAdapter : public Adapter {
 public:
  Result<sdk::Command> MakeCommand(const AgentJob& job) const override {
    sdk::Command command = BaseCommand(job);
    command.argv = {
        "aider",          "--yes-always",      "--no-auto-commits",          "--no-dirty-commits",
        "--no-gitignore", "--no-check-update", "--no-show-release-notes",    "--analytics-disable",
        "--no-pretty",    "--no-stream",       "--no-suggest-shell-commands"};
    if (std::string model = TextOf(job.config, "model"); !model.empty())
      command.argv.insert(command.argv.end(), {"--model", model});
    bool anthropic = TextOf(job.config, "model").find("claude") != std::string::npos;
    TRY_ASSIGN(std::string url, ModelUrl(job, anthropic ? "anthropic" : "openai"));
    if (!url.empty()) {
      command.env["OPENAI_API_BASE"] = url + "/v1";
      command.env["ANTHROPIC_API_BASE"] = command.env["ANTHROPIC_BASE_URL"] = url;
      command.env["OPENAI_API_KEY"] = command.env["ANTHROPIC_API_KEY"] = kDummyKey;
    }
    Complete(command, job);
    command.argv.insert(command.argv.end(), {"--message", Prompt(job)});
    return command;
  }
  std::unique_ptr<OutputParser> MakeParser() const override {
    return std::make_unique<AiderParser>();
  }
  std::vector<std::string> Litter() const override { return {".aider*"}; }
};

}  // namespace

std::unique_ptr<Adapter> MakeAiderAdapter() { return std::make_unique<AiderAdapter>(); }

}  // namespace caisson::work

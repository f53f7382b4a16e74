#include "work/adapter.h"

#include <map>

#include "work/adapters.h"
#include "work/json_fields.h"

namespace caisson::work {

const Adapter* FindAdapter(std::string_view name) {
  static const std::map<std::string_view, std::unique_ptr<Adapter>> kAdapters = [] {
    std::map<std::string_view, std::unique_ptr<Adapter>> all;
    all["command"] = MakeCommandAdapter();
    all["claude"] = MakeClaudeAdapter();
    all["codex"] = MakeCodexAdapter();
    all["opencode"] = MakeOpenCodeAdapter();
    all["gemini"] = MakeGeminiAdapter();
    all["aider"] = MakeAiderAdapter();
    all["builtin"] = MakeBuiltinAdapter();
    return all;
  }();
  auto found = kAdapters.find(name);
  return found == kAdapters.end() ? nullptr : found->second.get();
}

std::string Prompt(const AgentJob& job) {
  if (!job.prompt.empty()) return job.prompt;
  std::string text = "Task: " + job.title + "\n";
  if (!job.description.empty()) text += "\n" + job.description + "\n";
  if (!job.feedback.empty())
    text +=
        "\nYour work on this was reviewed; it is on the branch that is checked out. Change it as "
        "the reviewer asks:\n" +
        job.feedback + "\n";
  if (std::string more = TextOf(job.config, "instructions"); !more.empty())
    text += "\n" + more + "\n";
  text +=
      "\nWork in the current directory, a git checkout on a branch of its own. You may commit; "
      "what you leave uncommitted is committed for you. Do not push. End with a short summary of "
      "what you changed.\n";
  return text;
}

}  // namespace caisson::work

#include "session/prompt.h"

#include "work/json_fields.h"

namespace caisson::session {
namespace {

constexpr size_t kMaxEarlier = 24'000;  // of all messages before this one
constexpr size_t kMaxOne = 6'000;

std::string Conversation(const std::vector<store::MessageRow>& earlier) {
  std::string text;
  for (auto it = earlier.rbegin(); it != earlier.rend(); ++it) {
    if (it->content.empty()) continue;
    std::string line = fmt::format("{}: {}\n\n", it->role == "user" ? "User" : "You",
                                   work::Shorten(it->content, kMaxOne));
    if (text.size() + line.size() > kMaxEarlier) break;
    text.insert(0, line);
  }
  return text;
}

}  // namespace

std::string PromptFor(const Talk& talk) {
  std::string text;
  if (std::string before = Conversation(talk.earlier); !before.empty())
    text += "The conversation so far:\n\n" + before + "The user's new message:\n\n";
  text += talk.text + "\n";
  if (!talk.instructions.empty()) text += "\n" + talk.instructions + "\n";
  if (talk.mode == "plan")
    text += "\nDo not change any files now: answer with a plan of what you would do.\n";
  else if (!talk.branch.empty())
    text += fmt::format(
        "\nWork in the current directory, a git checkout on the branch {}. You may commit; what "
        "you leave uncommitted is committed for you. Do not push.\n",
        talk.branch);
  return text + "\nEnd with a short answer to the user.\n";
}

}  // namespace caisson::session

#include "work/command_policy.h"

#include "base/text.h"

namespace caisson::work {
namespace {

constexpr std::string_view kShellSyntax = "|&;<>()$`\\\"'*?[]#~={}!\n";

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsShell(std::string_view program) {
  std::string_view name = BaseName(program);
  return name == "sh" || name == "bash" || name == "dash" || name == "zsh";
}

// Words as a shell would find them, roughly: cut at blanks and at syntax.
std::vector<std::string_view> WordsOf(std::string_view script) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t i = 0; i <= script.size(); ++i) {
    bool ends = i == script.size() || std::isspace(static_cast<unsigned char>(script[i])) ||
                kShellSyntax.find(script[i]) != std::string_view::npos;
    if (!ends) continue;
    if (i > begin) words.push_back(script.substr(begin, i - begin));
    begin = i + 1;
  }
  return words;
}

}  // namespace

CommandPolicy::CommandPolicy(const Config& config) {
  for (std::string_view part : Split(config.command_policy, ',')) {
    size_t is = part.find('=');
    bool named = is != std::string_view::npos;
    std::string_view mode = Trim(named ? part.substr(is + 1) : part);
    modes_[std::string(named ? Trim(part.substr(0, is)) : "")] = mode == "deny"    ? Mode::kDeny
                                                                 : mode == "allow" ? Mode::kAllow
                                                                                   : Mode::kOff;
  }
  for (std::string_view part : Split(config.command_list, ','))
    if (std::string_view name = Trim(part); !name.empty()) programs_.emplace(name);
}

CommandPolicy::Mode CommandPolicy::ModeOf(const std::string& role) const {
  auto it = modes_.find(role);
  if (it == modes_.end()) it = modes_.find("");
  return it == modes_.end() ? Mode::kOff : it->second;
}

Status CommandPolicy::CheckProgram(Mode mode, std::string_view word) const {
  bool listed = programs_.contains(BaseName(word));
  if (mode == Mode::kDeny ? !listed : listed) return {};
  return Fail(Code::kPermissionDenied,
              "command_refused: the command policy of this server does not allow '{}'",
              BaseName(word));
}

Status CommandPolicy::CheckScript(Mode mode, std::string_view script) const {
  std::vector<std::string_view> words = WordsOf(script);
  if (mode == Mode::kDeny) {
    for (std::string_view word : words) TRY(CheckProgram(mode, word));
    return {};
  }
  if (script.find_first_of(kShellSyntax) != std::string_view::npos)
    return Fail(Code::kPermissionDenied,
                "command_refused: the command policy of this server allows single commands without "
                "shell syntax");
  return words.empty() ? Status() : CheckProgram(mode, words.front());
}

Status CommandPolicy::Check(const std::string& role, const std::vector<std::string>& argv) const {
  Mode mode = ModeOf(role);
  if (mode == Mode::kOff || argv.empty()) return {};
  if (IsShell(argv.front()) && argv.size() == 3 && argv[1].starts_with("-") &&
      argv[1].ends_with("c"))
    return CheckScript(mode, argv[2]);
  if (mode == Mode::kDeny) {
    // Also what it is asked to run: "env rm", "timeout 5 rm", "xargs rm".
    for (const std::string& word : argv) TRY(CheckProgram(mode, word));
    return {};
  }
  return CheckProgram(mode, argv.front());
}

}  // namespace caisson::work

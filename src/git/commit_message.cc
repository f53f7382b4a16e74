#include "git/commit_message.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "base/text.h"

namespace caisson::git {
namespace {

constexpr std::array<std::string_view, 11> kTypes = {
    "feat", "fix", "chore", "docs", "style", "refactor", "test", "build", "ci", "perf", "revert"};
constexpr size_t kMaxSubject = 100;       // characters
constexpr size_t kMaxMessage = 64 << 10;  // bytes

bool IsType(std::string_view text) {
  return std::find(kTypes.begin(), kTypes.end(), text) != kTypes.end();
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Characters of UTF-8, not bytes.
size_t Length(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// The parts of "type(scope)!: subject", as far as they are there.
struct Header {
  std::string_view type, scope, subject;
  bool breaking = false;
};

// False if it has no such form at all; whether the type is one of ours is not asked here.
bool Parse(std::string_view line, Header& header) {
  size_t end = line.find_first_of("(!:");
  if (end == std::string_view::npos) return false;
  header.type = line.substr(0, end);
  line.remove_prefix(end);
  if (line.front() == '(') {
    size_t close = line.find(')');
    if (close == std::string_view::npos || close == 1) return false;
    header.scope = line.substr(1, close - 1);
    if (header.scope.find('(') != std::string_view::npos) return false;
    line.remove_prefix(close + 1);
  }
  header.breaking = line.starts_with('!');
  if (header.breaking) line.remove_prefix(1);
  if (!line.starts_with(':')) return false;
  header.subject = line.substr(1);
  return true;
}

std::string_view FirstLine(std::string_view text) { return text.substr(0, text.find('\n')); }

// What is wrong with a message, or "".
std::string Problem(std::string_view message) {
  if (message.size() > kMaxMessage) return fmt::format("it is longer than {} bytes", kMaxMessage);
  if (message.find('\0') != std::string_view::npos) return "it holds a zero byte";
  if (ToUtf8(message) != message) return "it is not UTF-8";
  std::string_view line = FirstLine(message);
  if (std::any_of(line.begin(), line.end(), IsControl))
    return "its first line holds control characters";
  Header header;
  if (!Parse(line, header)) return "it does not begin with \"type: \" or \"type(scope): \"";
  if (!IsType(header.type))
    return fmt::format("\"{}\" is not one of the types {}", header.type.substr(0, 40),
                       fmt::join(kTypes, ", "));
  if (!header.subject.starts_with(' ')) return "there is no space behind the colon";
  std::string_view subject = header.subject.substr(1);
  if (Trim(subject).empty()) return "it has no subject";
  if (subject.front() == ' ') return "there is more than one space behind the colon";
  if (Length(subject) > kMaxSubject)
    return fmt::format("its subject has {} characters, at most {} are allowed", Length(subject),
                       kMaxSubject);
  return "";
}

// What people write instead of a type, and the words by which a change can be told.
std::string_view GuessType(std::string_view word) {
  static const std::vector<std::pair<std::string_view, std::string_view>> kWords = {
      {"feature", "feat"},      {"add", "feat"},        {"implement", "feat"},
      {"create", "feat"},       {"support", "feat"},    {"allow", "feat"},
      {"bugfix", "fix"},        {"hotfix", "fix"},      {"bug", "fix"},
      {"fixes", "fix"},         {"fixed", "fix"},       {"repair", "fix"},
      {"correct", "fix"},       {"doc", "docs"},        {"document", "docs"},
      {"readme", "docs"},       {"tests", "test"},      {"testing", "test"},
      {"cleanup", "refactor"},  {"rename", "refactor"}, {"move", "refactor"},
      {"simplify", "refactor"}, {"format", "style"},    {"lint", "style"},
      {"performance", "perf"},  {"optimize", "perf"},   {"optimise", "perf"},
      {"speed", "perf"},        {"deps", "build"},      {"release", "chore"},
      {"update", "chore"}};
  for (std::string_view type : kTypes)
    if (type == word) return type;
  for (const auto& [name, type] : kWords)
    if (name == word) return type;
  return "";
}

// One line of plain text: control characters and runs of spaces become one space.
std::string Flatten(std::string_view text) {
  std::string flat;
  for (char c : ToUtf8(text)) {
    if (IsControl(c)) c = ' ';
    if (c != ' ' || (!flat.empty() && flat.back() != ' ')) flat += c;
  }
  return std::string(Trim(flat));
}

// At most so many characters, at the end of a word if there is one.
std::string Shorten(std::string text, size_t most = kMaxSubject) {
  if (Length(text) <= most) return text;
  size_t end = 0;
  for (size_t characters = 0; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && characters++ == most) break;
  text.resize(end);
  size_t space = text.rfind(' ');
  if (space != std::string::npos && space > 0) text.resize(space);
  return text;
}

// Replaces every {name}; what is put in is not looked at again.
Result<std::string> Fill(std::string_view pattern,
                         const std::map<std::string_view, std::string>& values) {
  std::string filled;
  while (!pattern.empty()) {
    size_t open = pattern.find('{');
    filled += pattern.substr(0, open);
    if (open == std::string_view::npos) break;
    pattern.remove_prefix(open + 1);
    size_t close = pattern.find('}');
    auto value = values.find(pattern.substr(0, close));
    if (close == std::string_view::npos || value == values.end())
      return Fail(Code::kFailedPrecondition,
                  "commit_template holds {{{}, and only {{type}}, {{title}}, {{number}}, {{agent}} "
                  "and {{id}} are known",
                  pattern.substr(0, close == pattern.npos ? 40 : close + 1));
    filled += value->second;
    pattern.remove_prefix(close + 1);
  }
  return filled;
}

std::string FirstWord(std::string_view text) {
  size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
  return ToLower(text.substr(0, end));
}

}  // namespace

Status CheckCommitMessage(std::string_view message) {
  std::string problem = Problem(message);
  if (problem.empty()) return {};
  return Fail(Code::kInvalidArgument,
              "The commit message is not a conventional commit: {}. Suggestion: {}", problem,
              SuggestCommitMessage(message));
}

std::string SuggestCommitMessage(std::string_view text) {
  constexpr size_t kEnough = 1000;
  std::string line = Flatten(FirstLine(Trim(text)).substr(0, kEnough));
  Header header;
  std::string_view type;
  bool parsed = Parse(line, header) && !(type = GuessType(ToLower(Trim(header.type)))).empty();
  std::string subject = parsed ? Flatten(header.subject) : line;
  if (!parsed) type = GuessType(FirstWord(line));
  if (type.empty()) type = "chore";
  subject = Shorten(subject.empty() ? "update" : std::move(subject));
  std::string scope = parsed && !header.scope.empty() ? fmt::format("({})", header.scope) : "";
  return fmt::format("{}{}{}: {}", type, scope, parsed && header.breaking ? "!" : "", subject);
}

Result<std::string> RenderCommitMessage(std::string_view pattern, const CommitSubject& subject) {
  std::string nearest = SuggestCommitMessage(subject.title);
  Header header;
  Parse(nearest, header);
  std::string title(header.subject.substr(1));
  std::map<std::string_view, std::string> values = {
      {"type", nearest.substr(0, nearest.size() - header.subject.size() - 1)},
      {"title", title},
      {"number", std::to_string(subject.number)},
      {"agent", Flatten(subject.agent)},
      {"id", Flatten(subject.id)}};
  TRY_ASSIGN(std::string message, Fill(pattern, values));
  Header made;
  size_t length = Parse(FirstLine(message), made) ? Length(Trim(made.subject)) : 0;
  if (length > kMaxSubject && length - kMaxSubject < Length(title)) {
    values["title"] = Shorten(title, Length(title) - (length - kMaxSubject));
    TRY_ASSIGN(message, Fill(pattern, values));
  }
  if (std::string problem = Problem(message); !problem.empty())
    return Fail(Code::kFailedPrecondition,
                "commit_template \"{}\" makes \"{}\", which is not a conventional commit: {}",
                ToUtf8(pattern.substr(0, 100)), ToUtf8(FirstLine(message).substr(0, 200)), problem);
  return message;
}

}  // namespace caisson::git

#include "build/llm_prompt.h"

#include <boost/json.hpp>

#include "work/json_fields.h"

namespace caisson::build {
namespace {

namespace json = boost::json;

constexpr size_t kMaxFiles = 400 << 10;  // bytes of files in a question
constexpr size_t kMaxFailure = 8 << 10;
constexpr size_t kMaxAnswer = 4 << 10;  // repeated to the model

constexpr std::string_view kRules =
    R"(You write the files of small software projects that are installed, checked and started without anybody's help.

Answer with exactly one JSON object and nothing else:
{"changes": [{"path": "src/App.jsx", "new_content": "..."}, {"path": "old.js", "delete": true}], "note": "one sentence about what you did"}

- "new_content" is the whole content of the file, never a part of it or a patch.
- Paths are relative to the project, with "/" between their parts. Files are text.
- Files that you do not name stay as they are.
- A project in JavaScript or TypeScript has a package.json at its top, with all packages it uses and a script "dev" (development servers) or "start" (servers).
- A project in Python has a requirements.txt with all packages it uses.
- A server listens on 0.0.0.0 and the port in the variable PORT, if that is set.
- No secrets in files; no programs that ask questions; no build results such as node_modules.)";

json::object Message(std::string_view role, std::string_view content) {
  return {{"role", role}, {"content", content}};
}

std::string FilesText(const Files& files) {
  size_t bytes = 0;
  json::object contents;
  json::array names, others;
  for (const auto& [path, content] : files) {
    names.emplace_back(path);
    if (!IsText(content)) {
      others.emplace_back(path);
      continue;
    }
    bytes += path.size() + content.size();
    if (bytes <= kMaxFiles) contents[path] = content;
  }
  std::string rest = others.empty() ? "" : "\n\nThese are no text:\n" + json::serialize(others);
  if (bytes <= kMaxFiles)
    return "These are its files, by path:\n" + json::serialize(contents) + rest;
  return fmt::format(
      "It is too large to be shown as a whole. These are its files:\n{}\n\nThese are the contents "
      "of the first of them:\n{}{}",
      json::serialize(names), json::serialize(contents), rest);
}

}  // namespace

json::array FirstMessages(const RunnerJob& job) {
  std::string question;
  if (job.files.empty())
    question = fmt::format("Write a new project.\n\nWhat is wanted:\n{}", job.goal);
  else
    question = fmt::format("There is a project. {}\n\nWhat shall change:\n{}", FilesText(job.files),
                           job.goal);
  if (!job.failure.empty())
    question += fmt::format("\n\nThe last attempt failed. Mend it. What went wrong:\n{}",
                            work::Shorten(job.failure, kMaxFailure));
  return {Message("system", kRules), Message("user", question)};
}

void AddComplaint(json::array& messages, std::string_view answer, std::string_view wrong) {
  if (!answer.empty()) messages.push_back(Message("assistant", work::Shorten(answer, kMaxAnswer)));
  messages.push_back(Message(
      "user", fmt::format("This answer cannot be used: {}. Answer again, with exactly one JSON "
                          "object as described, and with all changes.",
                          wrong)));
}

}  // namespace caisson::build

#include "work/pull_request_text.h"

#include "base/text.h"
#include "work/json_fields.h"

namespace caisson::work {
namespace {

constexpr size_t kMaxPart = 10'000, kMaxTitle = 256, kMaxCommits = 50;

std::string Quote(std::string_view text) {
  std::string quoted;
  for (char c : Trim(text)) {
    if (c == '<') {
      quoted += "&lt;";
    } else if (c == '@') {
      quoted += "@\u200b";  // a blank of no width: the name stays readable, nobody is called
    } else if (c != '\r') {
      quoted += c;
    }
  }
  return Shorten(quoted, kMaxPart);
}

std::string_view FirstLine(std::string_view text) { return Trim(text.substr(0, text.find('\n'))); }

}  // namespace

std::string PullRequestTitle(const PullRequestText& text) {
  std::string_view subject = text.commits.empty() ? "" : FirstLine(text.commits.front());
  return Shorten(subject.empty() ? FirstLine(text.title) : subject, kMaxTitle - 3);
}

std::string PullRequestBody(const PullRequestText& text) {
  std::string body = "## Summary\n\n";
  body += text.summary.empty() ? Quote(text.title) : Quote(text.summary);
  body += "\n\n## Description\n\n**" + Quote(FirstLine(text.title)) + "**\n";
  if (!text.description.empty()) body += "\n" + Quote(text.description) + "\n";
  body += "\n## Changes\n\n";
  size_t count = 0;
  for (auto commit = text.commits.rbegin(); commit != text.commits.rend(); ++commit) {
    if (++count > kMaxCommits) break;
    body += "- " + Quote(FirstLine(*commit)) + "\n";
  }
  if (text.commits.size() > kMaxCommits)
    body += fmt::format("- and {} more\n", text.commits.size() - kMaxCommits);
  body +=
      "\n## Checklist\n\n"
      "- [ ] The changes do what the task asks for\n"
      "- [ ] Tests cover the changes\n"
      "- [ ] Documentation is up to date\n";
  body += fmt::format("\n---\nMade by the agent **{}** for task #{} (`{}`) at {} with Caisson.\n",
                      Quote(text.agent), text.task_number, text.task_id, FormatTime(text.at));
  return body;
}

}  // namespace caisson::work

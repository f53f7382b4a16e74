#include "build/handbook.h"

#include <algorithm>

#include "base/text.h"
#include "build/event.h"
#include "work/json_fields.h"

namespace caisson::build {
namespace {

using store::BuildRow;
using work::Shorten;

constexpr size_t kMaxFeatures = 20, kMaxText = 2'000, kMaxFeature = 200;

const std::string* FindReadme(const Files& files) {
  for (const char* name : {"README.md", "readme.md", "README", "README.txt"})
    if (auto found = files.find(name); found != files.end()) return &found->second;
  return nullptr;
}

bool IsBullet(std::string_view line) { return line.starts_with("- ") || line.starts_with("* "); }

// The first paragraph that is neither a heading nor a list.
std::string FirstParagraph(std::string_view text) {
  std::string paragraph;
  for (std::string_view line : Split(text, '\n')) {
    line = Trim(line);
    bool prose = !line.empty() && !line.starts_with('#') && !line.starts_with("```") &&
                 !line.starts_with('<') && !line.starts_with('!') && !IsBullet(line);
    if (prose) paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
    if (!prose && !paragraph.empty()) break;
  }
  return Shorten(paragraph, kMaxText);
}

void AddFeature(std::vector<std::string>& features, std::string_view text) {
  std::string feature = Shorten(Trim(text), kMaxFeature);
  if (feature.empty() || features.size() >= kMaxFeatures) return;
  if (std::ranges::find(features, feature) == features.end()) features.push_back(feature);
}

// The list below a heading that speaks of features.
void AddFromReadme(std::vector<std::string>& features, std::string_view text) {
  bool inside = false;
  for (std::string_view line : Split(text, '\n')) {
    line = Trim(line);
    if (line.starts_with('#')) inside = line.find("eature") != line.npos;
    if (inside && IsBullet(line)) AddFeature(features, line.substr(2));
  }
}

std::string WithoutTags(std::string_view html) {
  std::string text;
  bool tag = false;
  for (char c : html) {
    if (c == '<') tag = true;
    if (!tag) text += c == '\n' ? ' ' : c;
    if (c == '>') tag = false;
  }
  return text;
}

// What a page calls its parts.
void AddFromPage(std::vector<std::string>& features, std::string_view html) {
  for (std::string_view name : {"h1", "h2", "h3"}) {
    std::string open = fmt::format("<{}", name), close = fmt::format("</{}>", name);
    for (size_t at = html.find(open); at != html.npos; at = html.find(open, at + 1)) {
      size_t begin = html.find('>', at), end = html.find(close, at);
      if (begin == html.npos || end == html.npos || begin >= end) break;
      AddFeature(features, WithoutTags(html.substr(begin + 1, end - begin - 1)));
    }
  }
}

std::vector<std::string> FeaturesOf(const Files& files) {
  std::vector<std::string> features;
  if (const std::string* readme = FindReadme(files)) AddFromReadme(features, *readme);
  if (!features.empty()) return features;
  for (const auto& [path, content] : files)
    if (path.ends_with(".html")) AddFromPage(features, content);
  return features;
}

std::string Overview(const BuildRow& build, const Files& files) {
  std::string overview = Shorten(build.goal, kMaxText);
  const std::string* readme = FindReadme(files);
  if (std::string more = readme ? FirstParagraph(*readme) : ""; !more.empty())
    overview += (overview.empty() ? "" : "\n\n") + more;
  if (overview.empty())
    overview = fmt::format("{} is a {} project of {}.", build.project,
                           build.framework.empty() ? "small" : build.framework,
                           Counted(files.size(), "file"));
  return overview;
}

std::vector<std::string> StepsOf(const BuildRow& build, const DeployPath& path) {
  std::vector<std::string> steps;
  if (!build.preview_url.empty()) steps.push_back("Look at it at " + build.preview_url);
  steps.push_back(
      fmt::format("Download its files: /api/v1/builds/{}/archive, and unpack them", build.id));
  for (const std::string& line : path.install) steps.push_back("Install what it needs: " + line);
  if (!path.build.empty()) steps.push_back("Build it: " + path.build);
  if (!path.start.empty()) steps.push_back("Start it: " + path.start);
  if (path.target == "static")
    steps.push_back(fmt::format("Let a web server serve the directory {}", path.directory));
  return steps;
}

std::vector<Handbook::Question> Questions(const BuildRow& build, const DeployPath& path) {
  std::vector<Handbook::Question> faq;
  std::string server = build.port > 0 ? fmt::format(" It listens on port {}.", build.port) : "";
  faq.push_back(
      {"What is it made with?",
       fmt::format("{}.{}", build.framework.empty() ? "Files without a framework" : build.framework,
                   server)});
  faq.push_back({"What does it need to run elsewhere?",
                 path.target == "static"
                     ? "Any web server: it is made of files only."
                     : fmt::format("A machine for a {} program.", path.target)});
  faq.push_back(
      {"How do I change it?",
       fmt::format("Start a build with parent_id {} and say what shall be different.", build.id)});
  faq.push_back({"Why does the preview not answer any more?",
                 build.viewing_until
                     ? fmt::format("It is shown until {}; after that it can be resumed.",
                                   FormatTime(*build.viewing_until))
                     : "It is not shown now; it can be resumed."});
  return faq;
}

std::vector<Handbook::Change> ChangesOf(std::vector<BuildRow> versions) {
  std::ranges::sort(versions, std::ranges::greater(), &BuildRow::number);
  std::vector<Handbook::Change> changes;
  for (const BuildRow& one : versions)
    if (one.number >= 2)
      changes.push_back({VersionName(one.number),
                         one.goal.empty() ? "New files." : Shorten(one.goal, kMaxText),
                         one.completed_at.value_or(one.enqueued_at)});
  return changes;
}

}  // namespace

Handbook WriteHandbook(const BuildRow& build, const Files& files, const DeployPath& path,
                       const std::vector<BuildRow>& versions) {
  return {.overview = Overview(build, files),
          .features = FeaturesOf(files),
          .getting_started = StepsOf(build, path),
          .faq = Questions(build, path),
          .changelog = ChangesOf(versions)};
}

std::string Markdown(const std::string& project, const Handbook& handbook) {
  std::string text = fmt::format("# {}\n\n{}\n", project, handbook.overview);
  if (!handbook.features.empty()) text += "\n## Features\n\n";
  for (const std::string& one : handbook.features) text += "- " + one + "\n";
  text += "\n## Getting started\n\n";
  int number = 0;
  for (const std::string& step : handbook.getting_started)
    text += fmt::format("{}. {}\n", ++number, step);
  text += "\n## Questions\n";
  for (const auto& [question, answer] : handbook.faq)
    text += fmt::format("\n**{}** {}\n", question, answer);
  if (!handbook.changelog.empty()) text += "\n## Changes\n\n";
  for (const auto& [version, description, at] : handbook.changelog)
    text += fmt::format("- {} ({}): {}\n", version, FormatTime(at).substr(0, 10), description);
  return text;
}

}  // namespace caisson::build

#include "build/readiness.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "build/framework.h"
#include "build/log_lines.h"
#include "build/node_package.h"
#include "work/json_fields.h"

namespace caisson::build {
namespace {

namespace json = boost::json;
using store::BuildRow;

constexpr size_t kMaxLine = 4'000;

// What becomes of a project: files that any web server can serve, or a program of some kind.
struct Way {
  std::string_view framework, target, directory;
  bool needs_build = false;
};
constexpr std::array kWays = {
    Way{"vite", "static", "dist", true},
    Way{"react-scripts", "static", "build", true},
    Way{"astro", "static", "dist", true},
    Way{"next", "node", "", true},
    Way{"remix", "node", "", true},
    Way{"sveltekit", "node", "", true},
    Way{"nuxt", "node", "", true},
    Way{"express", "node", ""},
    Way{"hono", "node", ""},
    Way{"node", "node", ""},
    Way{"fastapi", "python", ""},
    Way{"flask", "python", ""},
    Way{"django", "python", ""},
    Way{"streamlit", "python", ""},
    Way{"python", "python", ""},
    Way{"go", "binary", ""},
    Way{"rust", "binary", ""},
};

const Way* FindWay(std::string_view framework) {
  const auto* found = std::ranges::find(kWays, framework, &Way::framework);
  return found == kWays.end() ? nullptr : found;
}

std::string StaticDirectory(const Files& files) {
  for (const char* directory : {".", "public", "dist", "build"})
    if (files.contains(std::string_view(directory) == "."
                           ? "index.html"
                           : fmt::format("{}/index.html", directory)))
      return directory;
  return ".";
}

// By package manager, what says which versions were installed.
std::vector<std::string> LocksOf(std::string_view manager) {
  if (manager == "npm") return {"package-lock.json", "npm-shrinkwrap.json"};
  if (manager == "pnpm") return {"pnpm-lock.yaml"};
  if (manager == "yarn") return {"yarn.lock"};
  if (manager == "uv") return {"uv.lock"};
  if (manager == "cargo") return {"Cargo.lock"};
  if (manager == "go") return {"go.sum"};
  return {};
}

void CheckLocks(const Files& files, Readiness& found) {
  for (const Packages& packages : DetectPackages(files)) {
    std::vector<std::string> locks = LocksOf(packages.manager);
    if (locks.empty()) continue;
    if (std::ranges::any_of(locks, [&](const auto& lock) { return files.contains(lock); }))
      continue;
    found.warnings.push_back(
        {"no_lock_file",
         fmt::format("There is no {}: the next installation may get other versions than the one "
                     "that was checked.",
                     locks.front())});
  }
}

void CheckState(const BuildRow& build, const json::object& options, const Files& files,
                Readiness& found) {
  if (build.state != "ready")
    found.blocking.push_back(
        {"not_ready", fmt::format("The build is {}: only a version that is ready was checked and "
                                  "has answered.",
                                  build.state)});
  if (options.contains("checks") && work::TextsOf(options, "checks").empty() &&
      !DetectChecks(files).empty())
    found.blocking.push_back(
        {"checks_skipped", "The request asked for no checks, though the project has some."});
}

DeployPath PathOf(const BuildRow& build, const Framework& framework, const Files& files) {
  const Way* way = FindWay(framework.name);
  DeployPath path{.target = way ? std::string(way->target) : "container",
                  .directory = way ? std::string(way->directory) : ""};
  if (framework.name == "static") {
    path.target = "static";
    path.directory = StaticDirectory(files);
  }
  for (const Packages& packages : DetectPackages(files))
    path.install.push_back(packages.install_command);
  auto package = ReadNodePackage(files);
  if (package && package->scripts.contains("build")) path.build = "npm run build";
  if (path.target == "static") return path;
  path.start = build.start_command.empty() ? framework.start_command : build.start_command;
  // What was started for the preview is a server for development, if there is a choice.
  if (path.target == "node" && package && package->scripts.contains("start"))
    path.start = "npm run start";
  return path;
}

}  // namespace

Readiness Judge(const BuildRow& build, const Files& files) {
  Readiness found;
  json::object options = work::ParseObject(build.options);
  CheckState(build, options, files, found);
  Framework framework = DetectFramework(files);
  found.path = PathOf(build, framework, files);
  if (std::string line = work::TextOf(options, "install_command"); !line.empty())
    found.path.install = {line};
  bool told = !work::TextOf(options, "start_command").empty();
  if (framework.name == "unknown" && !told)
    found.blocking.push_back({"no_start_command", "Nothing says how this project is started."});
  const Way* way = FindWay(framework.name);
  if (way && way->needs_build && found.path.build.empty())
    found.blocking.push_back(
        {"no_build_script",
         fmt::format("package.json has no script \"build\", which {} needs outside of development.",
                     framework.name),
         "package.json"});
  CheckLocks(files, found);
  return found;
}

std::vector<Issue> FindSecrets(const std::string& path, std::string_view content, size_t limit) {
  std::string name = path.substr(path.rfind('/') + 1);
  bool settings = name == ".env" || (name.starts_with(".env.") && !name.ends_with("example"));
  std::vector<Issue> found;
  int64_t number = 0;
  for (std::string_view line : Split(content, '\n')) {
    ++number;
    if (found.size() >= limit) break;
    std::string text(line.substr(0, kMaxLine));
    // In a program `token = next()` is no secret; in a file of settings it is one.
    bool holds = settings ? RedactPatterns(text) != text : HoldsToken(text);
    if (holds)
      found.push_back(
          {"secret_in_file", "This line looks like it holds a key or a password.", path, number});
  }
  return found;
}

}  // namespace caisson::build

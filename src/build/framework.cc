#include "build/framework.h"

#include <array>

#include "build/node_package.h"
#include "build/python_project.h"
#include "build/shell_word.h"

namespace caisson::build {
namespace {

constexpr int64_t kDefaultPort = 3'000;

// How a node framework is known, and what it listens to. The first that fits decides: most of them
// have vite among their packages as well.
struct NodeRule {
  std::string_view package;  // among the dependencies
  std::string_view name;
  std::string_view script;  // what starts it, if there is such a script
  int64_t port;
};
constexpr std::array kNodeRules = {
    NodeRule{"next", "next", "dev", 3'000},
    NodeRule{"nuxt", "nuxt", "dev", 3'000},
    NodeRule{"astro", "astro", "dev", 4'321},
    NodeRule{"@sveltejs/kit", "sveltekit", "dev", 5'173},
    NodeRule{"@react-router/dev", "remix", "dev", 5'173},
    NodeRule{"@remix-run/dev", "remix", "dev", 5'173},
    NodeRule{"vite", "vite", "dev", 5'173},
    NodeRule{"react-scripts", "react-scripts", "start", 3'000},
    NodeRule{"express", "express", "start", 3'000},
    NodeRule{"@hono/node-server", "hono", "start", 3'000},
};

// Servers that take address and port only as arguments, or in which an argument in the script wins
// over the environment. By the beginning of the script.
struct Arguments {
  std::string_view script;
  std::string_view host, port;
};
constexpr std::array kArguments = {
    Arguments{"vite", "--host 0.0.0.0", "--strictPort --port"},
    Arguments{"astro dev", "--host 0.0.0.0", "--port"},
    Arguments{"remix vite:dev", "--host 0.0.0.0", "--port"},
    Arguments{"react-router dev", "--host 0.0.0.0", "--port"},
    Arguments{"next dev", "--hostname 0.0.0.0", "--port"},
    Arguments{"nuxt dev", "--host 0.0.0.0", "--port"},
    Arguments{"nuxi dev", "--host 0.0.0.0", "--port"},
};

// A single program with arguments, which takes more of them at its end.
bool IsPlainCall(std::string_view script, std::string_view program) {
  return script.starts_with(program) &&
         (script.size() == program.size() || script[program.size()] == ' ') &&
         script.find_first_of("&|;<>()`$\n#") == script.npos;
}

std::string RunScript(const NodePackage& package, std::string_view script, int64_t port) {
  std::string command = fmt::format("HOST=0.0.0.0 PORT={} npm {}", port,
                                    script == "start" ? "start" : fmt::format("run {}", script));
  auto text = package.scripts.find(script);
  if (text == package.scripts.end()) return command;
  for (const Arguments& rule : kArguments)
    if (IsPlainCall(text->second, rule.script))
      return fmt::format("{} -- {} {} {}", command, rule.host, rule.port, port);
  return command;
}

// The script a rule asks for, or the other one if only that exists.
std::string_view ChooseScript(const NodePackage& package, std::string_view wanted) {
  std::string_view other = wanted == "dev" ? "start" : "dev";
  return !package.scripts.contains(wanted) && package.scripts.contains(other) ? other : wanted;
}

Framework NodeFramework(const NodePackage& package, const NodeRule& rule, const Files& files) {
  std::string_view script = ChooseScript(package, rule.script);
  // A server without scripts is started by its main file; a dev server has none.
  std::string entry = rule.script == "start" ? package.Entry(files) : "";
  int64_t port = rule.port;
  // Remix before it used vite: its own server.
  auto text = package.scripts.find(script);
  if (rule.name == "remix" && text != package.scripts.end() &&
      IsPlainCall(text->second, "remix dev"))
    port = kDefaultPort;
  if (!package.scripts.contains(script) && !entry.empty())
    return {std::string(rule.name),
            fmt::format("HOST=0.0.0.0 PORT={} node {}", port, ShellWord(entry)), port};
  return {std::string(rule.name), RunScript(package, script, port), port};
}

std::optional<Framework> KnownNode(const Files& files) {
  auto package = ReadNodePackage(files);
  if (!package) return std::nullopt;
  for (const NodeRule& rule : kNodeRules)
    if (package->dependencies.contains(rule.package)) return NodeFramework(*package, rule, files);
  return std::nullopt;
}

std::optional<Framework> AnyNode(const Files& files) {
  auto package = ReadNodePackage(files);
  if (!package) return std::nullopt;
  for (std::string_view script : {"dev", "start"})
    if (package->scripts.contains(script))
      return Framework{"node", RunScript(*package, script, kDefaultPort), kDefaultPort};
  std::string entry = package->Entry(files);
  if (entry.empty()) return std::nullopt;
  return Framework{"node",
                   fmt::format("HOST=0.0.0.0 PORT={} node {}", kDefaultPort, ShellWord(entry)),
                   kDefaultPort};
}

std::optional<Framework> Go(const Files& files) {
  if (!files.contains("go.mod")) return std::nullopt;
  std::string package = ".";
  if (!files.contains("main.go"))
    for (const auto& [path, content] : files)
      if (path.starts_with("cmd/") && path.ends_with("/main.go"))
        package = "./" + path.substr(0, path.size() - 8);
  return Framework{"go",
                   fmt::format("HOST=0.0.0.0 PORT={} go run {}", kDefaultPort, ShellWord(package)),
                   kDefaultPort};
}

std::optional<Framework> Rust(const Files& files) {
  if (!files.contains("Cargo.toml")) return std::nullopt;
  return Framework{"rust", fmt::format("HOST=0.0.0.0 PORT={} cargo run", kDefaultPort),
                   kDefaultPort};
}

std::optional<Framework> Static(const Files& files) {
  for (std::string_view directory : {".", "public", "dist", "build"})
    if (files.contains(directory == "." ? "index.html" : fmt::format("{}/index.html", directory)))
      return Framework{"static",
                       fmt::format("python3 -m http.server {} --bind 0.0.0.0 --directory {}",
                                   kDefaultPort, directory),
                       kDefaultPort};
  return std::nullopt;
}

}  // namespace

Framework DetectFramework(const Files& files) {
  // What is named beats what is guessed: a Django project may have a package.json for its styles.
  for (auto* detect : {KnownNode, KnownPython, Go, Rust, AnyNode, AnyPython, Static})
    if (std::optional<Framework> found = detect(files)) return *found;
  return {"unknown", fmt::format("HOST=0.0.0.0 PORT={} npm run dev", kDefaultPort), kDefaultPort};
}

}  // namespace caisson::build

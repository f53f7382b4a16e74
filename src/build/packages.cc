#include <algorithm>
#include <array>

#include "base/text.h"
#include "build/framework.h"
#include "build/node_package.h"
#include "build/python_project.h"
#include "build/shell_word.h"

namespace caisson::build {
namespace {

// npm comes with node; it fetches the other two. `npm run` starts what either of them installed.
constexpr std::string_view kNpm = "npm install --no-audit --no-fund";
constexpr std::string_view kPnpm = "npx --yes pnpm install --no-frozen-lockfile";
constexpr std::string_view kYarn = "npx --yes yarn@1 install --non-interactive";
// From its second version on yarn keeps packages in archives, which not every tool can read.
constexpr std::string_view kNewYarn =
    "YARN_NODE_LINKER=node-modules YARN_ENABLE_IMMUTABLE_INSTALLS=false npx --yes "
    "@yarnpkg/cli-dist install";
constexpr std::string_view kVenv = "python3 -m venv .venv && .venv/bin/python -m pip install ";
// uv is not part of every template. It lives apart, because `uv sync` removes what is not listed.
constexpr std::string_view kUv =
    "if command -v uv >/dev/null; then uv sync; else python3 -m venv .venv-uv && "
    ".venv-uv/bin/python -m pip install uv && .venv-uv/bin/uv sync; fi";

// Go and Rust are too large for every template; where they are missing the distribution has them.
std::string WithTool(std::string_view tool, std::string_view package, std::string_view command) {
  return fmt::format(
      "if ! command -v {} >/dev/null; then sudo apt-get update && "
      "sudo DEBIAN_FRONTEND=noninteractive apt-get install --yes {} || exit; fi; {}",
      tool, package, command);
}

bool Holds(const Files& files, const char* path, std::string_view text) {
  auto file = files.find(path);
  return file != files.end() && file->second.find(text) != std::string::npos;
}

Packages Node(const Files& files) {
  std::string manager;
  if (files.contains("pnpm-lock.yaml")) {
    manager = "pnpm";
  } else if (files.contains("yarn.lock")) {
    manager = "yarn";
  } else if (!files.contains("package-lock.json") && !files.contains("npm-shrinkwrap.json")) {
    if (auto package = ReadNodePackage(files)) manager = package->manager;
  }
  if (manager == "pnpm") return {"pnpm", std::string(kPnpm)};
  if (manager != "yarn") return {"npm", std::string(kNpm)};
  bool is_new =
      Holds(files, "yarn.lock", "__metadata:") || files.contains(".yarnrc.yml") ||
      (Holds(files, "package.json", "\"yarn@") && !Holds(files, "package.json", "\"yarn@1"));
  return {"yarn", std::string(is_new ? kNewYarn : kYarn)};
}

std::optional<Packages> Python(const Files& files) {
  bool has_project = Holds(files, "pyproject.toml", "[project]");
  if (files.contains("uv.lock") || (has_project && !files.contains("requirements.txt")))
    return Packages{"uv", std::string(kUv)};
  if (files.contains("requirements.txt"))
    return Packages{"pip", std::string(kVenv) + "-r requirements.txt"};
  if (Holds(files, "pyproject.toml", "[build-system]"))
    return Packages{"pip", std::string(kVenv) + "."};
  return std::nullopt;
}

std::string TypeCheck(const NodePackage& package, const Files& files) {
  for (const char* script : {"typecheck", "type-check"})
    if (package.scripts.contains(script)) return fmt::format("npm run {}", script);
  // These make the types of their files themselves, when they build.
  for (const char* own :
       {"next", "nuxt", "astro", "@sveltejs/kit", "@react-router/dev", "@remix-run/dev", "vue"})
    if (package.dependencies.contains(own)) return "";
  auto build = package.scripts.find("build");
  bool built_by_tsc =
      build != package.scripts.end() && build->second.find("tsc") != std::string::npos;
  if (!package.dependencies.contains("typescript") || !files.contains("tsconfig.json") ||
      built_by_tsc)
    return "";
  // A tsconfig.json that only refers to others has no files of its own to check.
  bool refers = Holds(files, "tsconfig.json", "\"references\"");
  return refers ? "npx --no-install tsc -b" : "npx --no-install tsc --noEmit";
}

void AddNodeChecks(const Files& files, std::vector<std::string>& checks) {
  auto package = ReadNodePackage(files);
  if (!package) return;
  if (std::string check = TypeCheck(*package, files); !check.empty()) checks.push_back(check);
  // A dev server starts with files that do not compile and shows the error in the page.
  if (package->scripts.contains("build")) checks.push_back("npm run build");
}

void AddPythonChecks(const Files& files, std::vector<std::string>& checks) {
  if (!HasPython(files)) return;
  checks.push_back(PythonProgram(files) + " -m compileall -q -x '[.]venv|node_modules' .");
  if (std::string manage = ManagePath(files); !manage.empty())
    checks.push_back(fmt::format("{} {} check", PythonProgram(files), ShellWord(manage)));
}

}  // namespace

std::vector<Packages> DetectPackages(const Files& files) {
  std::vector<Packages> found;
  if (files.contains("package.json")) found.push_back(Node(files));
  if (auto python = Python(files)) found.push_back(*python);
  if (files.contains("Cargo.toml"))
    found.push_back({"cargo", WithTool("cargo", "cargo", "cargo fetch")});
  // go.sum holds checksums that nobody can make up, so it is made if it is missing.
  if (files.contains("go.mod"))
    found.push_back({"go", WithTool("go", "golang-go",
                                    files.contains("go.sum") ? "go mod download" : "go mod tidy")});
  return found;
}

std::vector<std::string> DetectChecks(const Files& files) {
  std::vector<std::string> checks;
  AddNodeChecks(files, checks);
  AddPythonChecks(files, checks);
  if (files.contains("go.mod")) checks.push_back("go build ./...");
  if (files.contains("Cargo.toml")) checks.push_back("cargo build");
  return checks;
}

bool IsNetworkFailure(std::string_view output) {
  constexpr std::array kSigns = {
      "econnreset",
      "etimedout",
      "econnrefused",
      "enotfound",
      "eai_again",
      "err_socket_timeout",
      "socket hang up",
      "socket timeout",
      "npm err! network",
      "npm error network",
      "network timeout",
      "network error",
      "network is unreachable",
      "network connection",
      "network request",
      "fetch failed",
      "temporary failure in name resolution",
      "name or service not known",
      "could not resolve host",
      "no route to host",
      "connection reset",
      "connection refused",
      "connection aborted",
      "connection timed out",
      "read timed out",
      "operation timed out",
      "tls handshake timeout",
      "i/o timeout",
      "incompleteread",
      "newconnectionerror",
      "remote end closed connection",
      "spurious network error",
      "502 bad gateway",
      "503 service unavailable",
      "504 gateway time",
  };
  std::string text = ToLower(output);
  return std::ranges::any_of(kSigns,
                             [&](const char* sign) { return text.find(sign) != text.npos; });
}

}  // namespace caisson::build

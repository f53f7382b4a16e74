// What kind of project the files are: how its packages are installed, how it is checked and
// started.
#pragma once

#include <string>
#include <vector>

#include "build/file_change.h"

namespace caisson::build {

struct Framework {
  std::string name;  // "next", "vite", "react-scripts", "remix", "astro", "sveltekit", "nuxt",
                     // "express", "hono", "fastapi", "flask", "django", "streamlit", "static",
                     // "node", "python", "go", "rust", "unknown"
  std::string start_command;  // by a shell in the workspace; serves on 0.0.0.0 and `port`
  int64_t port = 3000;
};
// docs/build-frameworks.md has the table; the order of the rules matters (next before vite).
Framework DetectFramework(const Files& files);

struct Packages {
  std::string manager;          // "npm", "pnpm", "yarn", "pip", "uv", "cargo", "go"; "" = none
  std::string install_command;  // by a shell in the workspace
};
// By lock files first. Several (a package.json and a requirements.txt) are installed in turn.
std::vector<Packages> DetectPackages(const Files& files);
// Whether a failed installation was the network's fault and is worth a second try.
bool IsNetworkFailure(std::string_view output);

// Commands that must succeed before the server is started: the type check, the compiler.
std::vector<std::string> DetectChecks(const Files& files);

}  // namespace caisson::build

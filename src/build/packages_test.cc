#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build/framework.h"

namespace caisson::build {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Managers(const Files& files) {
  std::vector<std::string> names;
  for (const Packages& packages : DetectPackages(files)) {
    EXPECT_FALSE(packages.install_command.empty());
    names.push_back(packages.manager);
  }
  return names;
}

TEST(Packages, LockFilesDecide) {
  EXPECT_THAT(Managers({{"package.json", "{}"}}), ElementsAre("npm"));
  EXPECT_THAT(Managers({{"package.json", "not JSON"}}), ElementsAre("npm"));
  EXPECT_THAT(Managers({{"package.json", "{}"}, {"pnpm-lock.yaml", ""}}), ElementsAre("pnpm"));
  EXPECT_THAT(Managers({{"package.json", "{}"}, {"yarn.lock", ""}}), ElementsAre("yarn"));
  std::string pnpm = R"({"packageManager":"pnpm@9.1.0"})";
  EXPECT_THAT(Managers({{"package.json", pnpm}}), ElementsAre("pnpm"));
  EXPECT_THAT(Managers({{"package.json", pnpm}, {"package-lock.json", ""}}), ElementsAre("npm"));
  EXPECT_THAT(Managers({{"package.json", R"({"packageManager":"evil; rm -rf /"})"}}),
              ElementsAre("npm"));
}

TEST(Packages, NewYarnIsAnotherProgram) {
  std::string old_one =
      DetectPackages({{"package.json", "{}"}, {"yarn.lock", "# yarn lockfile v1"}})
          .at(0)
          .install_command;
  EXPECT_THAT(old_one, HasSubstr("yarn@1 "));
  for (const Files& files :
       {Files{{"package.json", "{}"}, {"yarn.lock", "__metadata:\n  version: 8\n"}},
        Files{{"package.json", R"({"packageManager":"yarn@4.5.0"})"}}})
    EXPECT_THAT(DetectPackages(files).at(0).install_command, HasSubstr("@yarnpkg/cli-dist"));
}

TEST(Packages, Python) {
  EXPECT_THAT(DetectPackages({{"requirements.txt", "flask"}}).at(0).install_command,
              "python3 -m venv .venv && .venv/bin/python -m pip install -r requirements.txt");
  EXPECT_THAT(Managers({{"requirements.txt", ""}, {"pyproject.toml", "[project]\n"}}),
              ElementsAre("pip"));
  EXPECT_THAT(Managers({{"requirements.txt", ""}, {"uv.lock", ""}}), ElementsAre("uv"));
  EXPECT_THAT(Managers({{"pyproject.toml", "[project]\nname = \"x\"\n"}}), ElementsAre("uv"));
  EXPECT_THAT(Managers({{"pyproject.toml", "[build-system]\n"}}), ElementsAre("pip"));
  EXPECT_THAT(Managers({{"pyproject.toml", "[tool.black]\n"}, {"main.py", ""}}), IsEmpty());
}

TEST(Packages, Others) {
  EXPECT_THAT(Managers({{"Cargo.toml", ""}}), ElementsAre("cargo"));
  // The compiler is installed first where it is missing.
  EXPECT_THAT(DetectPackages({{"Cargo.toml", ""}}).at(0).install_command,
              AllOf(HasSubstr("install --yes cargo"), EndsWith("; cargo fetch")));
  EXPECT_THAT(DetectPackages({{"go.mod", ""}}).at(0).install_command,
              AllOf(HasSubstr("install --yes golang-go"), EndsWith("; go mod tidy")));
  EXPECT_THAT(DetectPackages({{"go.mod", ""}, {"go.sum", ""}}).at(0).install_command,
              EndsWith("; go mod download"));
  EXPECT_THAT(Managers({{"index.html", ""}}), IsEmpty());
}

TEST(Packages, SeveralAreInstalledInTurn) {
  EXPECT_THAT(Managers({{"package.json", "{}"}, {"requirements.txt", ""}, {"go.mod", ""}}),
              ElementsAre("npm", "pip", "go"));
}

TEST(Packages, KnowsTheNetworksFault) {
  for (const char* output :
       {"npm error code ECONNRESET\nnpm error network aborted", "npm ERR! network timeout at: x",
        "npm error code ETIMEDOUT", "npm error code EAI_AGAIN",
        "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError('",
        "ReadTimeoutError(\"HTTPSConnectionPool(host='x', port=443): Read timed out.",
        "fatal: unable to access: Could not resolve host: x", "dial tcp: i/o timeout",
        "warning: spurious network error (2 tries remaining)", "error: 502 Bad Gateway"})
    EXPECT_TRUE(IsNetworkFailure(output)) << output;
  for (const char* output :
       {"", "npm error code ERESOLVE", "npm error 404 Not Found - GET x",
        "No matching distribution", "added neural-network@1.0.0", "SyntaxError: Unexpected token"})
    EXPECT_FALSE(IsNetworkFailure(output)) << output;
}

TEST(Checks, WhatCompilesIsCompiled) {
  EXPECT_THAT(DetectChecks({{"package.json", R"({"scripts":{"build":"vite build"}})"}}),
              ElementsAre("npm run build"));
  EXPECT_THAT(DetectChecks({{"go.mod", ""}}), ElementsAre("go build ./..."));
  EXPECT_THAT(DetectChecks({{"Cargo.toml", ""}}), ElementsAre("cargo build"));
  EXPECT_THAT(DetectChecks({{"index.html", ""}}), IsEmpty());
  EXPECT_THAT(DetectChecks({{"package.json", "{"}}), IsEmpty());
}

TEST(Checks, TypesAreCheckedOnce) {
  std::string typed = R"({"devDependencies":{"typescript":"5"},"scripts":{"build":"vite build"}})";
  EXPECT_THAT(DetectChecks({{"package.json", typed}, {"tsconfig.json", "{}"}}),
              ElementsAre("npx --no-install tsc --noEmit", "npm run build"));
  EXPECT_THAT(DetectChecks({{"package.json", typed},
                            {"tsconfig.json", R"({"files":[],"references":[{"path":"x"}]})"}}),
              ElementsAre("npx --no-install tsc -b", "npm run build"));
  EXPECT_THAT(DetectChecks({{"package.json", typed}}), ElementsAre("npm run build"));
  std::string built =
      R"({"devDependencies":{"typescript":"5"},"scripts":{"build":"tsc -b && vite build"}})";
  EXPECT_THAT(DetectChecks({{"package.json", built}, {"tsconfig.json", "{}"}}),
              ElementsAre("npm run build"));
  std::string own =
      R"({"devDependencies":{"typescript":"5"},"scripts":{"typecheck":"tsc","build":"vite build"}})";
  EXPECT_THAT(DetectChecks({{"package.json", own}, {"tsconfig.json", "{}"}}),
              ElementsAre("npm run typecheck", "npm run build"));
  std::string next = R"({"dependencies":{"next":"15","typescript":"5"}})";
  EXPECT_THAT(DetectChecks({{"package.json", next}, {"tsconfig.json", "{}"}}), IsEmpty());
}

TEST(Checks, PythonIsCompiled) {
  EXPECT_THAT(DetectChecks({{"app.py", ""}, {"requirements.txt", ""}}),
              ElementsAre(".venv/bin/python -m compileall -q -x '[.]venv|node_modules' ."));
  EXPECT_THAT(DetectChecks({{"manage.py", "import django"}}),
              ElementsAre("python3 -m compileall -q -x '[.]venv|node_modules' .",
                          "python3 'manage.py' check"));
}

}  // namespace
}  // namespace caisson::build

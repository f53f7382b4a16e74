#include "build/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson::build {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Case {
  const char* stage;
  const char* log;
  const char* category;
  const char* summary;
};

TEST(Failure, IsKnownByWhatProgramsSay) {
  for (const Case& one : {
           Case{"deps", "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve\n",
                "install_failure",
                "Some packages need versions of each other that do not fit together."},
           Case{"deps", "npm error notarget No matching version found for react@99.0.0.\n",
                "install_failure", "There is no such version of the package \"react@99.0.0\"."},
           Case{"deps",
                "npm error code E404\nnpm error 404 Not Found - GET https://r/x - Not found",
                "install_failure", "A package does not exist in the registry."},
           Case{"deps",
                "npm error code E404\nnpm error 404 Not Found - GET https://r/left-padd\n"
                "npm error 404\nnpm error 404  The requested resource 'left-padd@1' could not be "
                "found or you do not have permission to access it.\n",
                "install_failure", "The package \"left-padd@1\" does not exist in the registry."},
           Case{"checks",
                "error during build:\n[vite:build-html] Transform failed with 1 error:\n"
                "/home/user/project/src/m.jsx:2:6: ERROR: Expected identifier but found \"=\"\n",
                "compile_error", "The code does not compile: Expected identifier but found \"=\"."},
           Case{"deps", "error Couldn't find package \"@a/b\" on the \"npm\" registry.",
                "install_failure", "The package \"@a/b\" does not exist in the registry."},
           Case{"deps", "npm error code EJSONPARSE\n", "install_failure",
                "package.json is not valid JSON."},
           Case{"deps", "ERROR: No matching distribution found for flaskk==1.0\n",
                "install_failure",
                "The Python package \"flaskk==1.0\" does not exist, or not in that version."},
           Case{"deps", "error: no matching package named `serdee` found\n", "install_failure",
                "The crate \"serdee\" does not exist."},
           Case{"deps", "npm error ENOSPC: no space left on device, write", "install_failure",
                "The disk of the sandbox is full."},
           Case{"checks", "src/App.tsx(3,5): error TS2304: Cannot find name 'useStat'.\n",
                "compile_error", "The type check found an error: Cannot find name 'useStat'."},
           Case{"checks",
                "  File \"/home/user/project/app.py\", line 1\n    def\n"
                "SyntaxError: invalid syntax\n",
                "compile_error", "The code cannot be read: invalid syntax."},
           Case{"checks", "error[E0425]: cannot find value `x` in this scope\n --> src/main.rs:2:5",
                "compile_error", "The code does not compile: cannot find value `x` in this scope."},
           Case{"checks", "[vite]: Rollup failed to resolve import \"./Missing\" from \"/home/x\"",
                "compile_error", "\"Missing\" is imported but does not exist."},
           Case{"checks", "Module not found: Error: Can't resolve 'left-pad' in '/home/user'",
                "compile_error", "\"left-pad\" is imported but does not exist."},
           Case{"checks", "npm error Missing script: \"dev\"\n", "compile_error",
                "package.json has no script \"dev\"."},
           Case{"serve", "npm error Missing script: \"dev\"\n", "runtime_crash",
                "package.json has no script \"dev\"."},
           Case{"serve", "Error: listen EADDRINUSE: address already in use :::3000",
                "runtime_crash", "The server's port is already in use."},
           Case{"serve",
                "Traceback (most recent call last):\n  File \"/x/app.py\", line 1\n"
                "ModuleNotFoundError: No module named 'flask'\n",
                "runtime_crash", "The Python module \"flask\" is imported but not installed."},
           Case{"serve",
                "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'hono' imported from "
                "/home/user/project/index.js",
                "compile_error", "\"hono\" is imported but not installed."},
           Case{"serve",
                "/home/user/project/a.js:1\nTypeError: app.listn is not a function\n"
                "    at Object.<anonymous> (/home/user/project/a.js:1:5)",
                "runtime_crash", "The program failed while it ran: app.listn is not a function."},
           Case{"serve", "panic: runtime error: index out of range [3]\n\ngoroutine 1",
                "runtime_crash",
                "The program failed while it ran: runtime error: index out of range [3]."},
           Case{"checks", "FATAL ERROR: Reached heap limit - JavaScript heap out of memory",
                "compile_error", "The sandbox ran out of memory."},
       }) {
    Failure failure = ExplainFailure(one.stage, one.log, 1, false);
    EXPECT_EQ(failure.category, one.category) << one.log;
    EXPECT_EQ(failure.summary, one.summary) << one.log;
  }
}

TEST(Failure, TheStageTellsWhenTheLogDoesNot) {
  for (const Case& one :
       {Case{"queued", "", "sandbox_failure", "The sandbox could not be prepared."},
        Case{"starting", "", "sandbox_failure", "The sandbox could not be prepared."},
        Case{"scaffold", "", "sandbox_failure", "The sandbox could not be prepared."},
        Case{"code", "", "runner_failure", "The code could not be written."},
        Case{"deps", "", "install_failure", "The packages could not be installed."},
        Case{"checks", "", "compile_error", "The checks of the code failed."},
        Case{"serve", "", "runtime_crash", "The server ended instead of answering."},
        Case{"elsewhere", "", "internal", "Something unexpected went wrong on our side."},
        // A model may speak of errors without having one.
        Case{"code", "SyntaxError: x", "runner_failure", "The code could not be written."}}) {
    Failure failure = ExplainFailure(one.stage, one.log, 1, false);
    EXPECT_EQ(failure.category, one.category) << one.stage;
    EXPECT_EQ(failure.summary, one.summary) << one.stage;
  }
}

TEST(Failure, ExitCodesTell) {
  EXPECT_THAT(ExplainFailure("checks", "", 137, false).summary, HasSubstr("memory"));
  EXPECT_THAT(ExplainFailure("deps", "sh: 1: uv: not found", 127, false).summary,
              HasSubstr("not installed"));
  EXPECT_THAT(ExplainFailure("serve", "", 139, false).summary, HasSubstr("signal 11"));
}

TEST(Failure, TimeoutsAreTimeouts) {
  for (const char* stage : {"starting", "scaffold", "code", "deps", "checks", "serve"}) {
    Failure failure = ExplainFailure(stage, "SyntaxError: x", 0, true);
    EXPECT_EQ(failure.category, "timeout");
    EXPECT_FALSE(failure.summary.empty());
  }
  EXPECT_NE(ExplainFailure("deps", "", 0, true).summary,
            ExplainFailure("checks", "", 0, true).summary);
}

TEST(Failure, SummariesAreForPeople) {
  Failure failure = ExplainFailure(
      "serve",
      "TypeError: cannot read \x1b[31m/home/user/project/secret.js at https://x/y API_TOKEN=abc123 "
      "sk-abcdefgh12345678 in handler\n    at run (/home/user/project/a.js:3:4)",
      1, false);
  EXPECT_THAT(failure.summary, Not(HasSubstr("/home")));
  EXPECT_THAT(failure.summary, Not(HasSubstr("https")));
  EXPECT_THAT(failure.summary, Not(HasSubstr("abc123")));
  EXPECT_THAT(failure.summary, Not(HasSubstr("sk-")));
  EXPECT_THAT(failure.summary, Not(HasSubstr("\x1b")));
  EXPECT_THAT(failure.summary, HasSubstr("in handler"));
  // Names that are none, and words without end.
  EXPECT_EQ(ExplainFailure("checks", "Cannot find module 'no name'", 1, false).summary,
            "The checks of the code failed.");
  EXPECT_LT(
      ExplainFailure("serve", "TypeError: " + std::string(9'999, 'x'), 1, false).summary.size(),
      250u);
}

}  // namespace
}  // namespace caisson::build

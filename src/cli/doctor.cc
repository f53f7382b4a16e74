#include "cli/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "engine/doctor.h"

namespace caisson::cli {
namespace {

using engine::Finding;
using Level = engine::Finding::Level;

const char* LevelName(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kWarning:
      return "warning";
    case Level::kProblem:
      return "problem";
  }
  return "";
}

const char* Color(Level level) {
  switch (level) {
    case Level::kOk:
      return "\033[32m";
    case Level::kWarning:
      return "\033[33m";
    case Level::kProblem:
      return "\033[31m";
  }
  return "";
}

void PrintFindings(const std::vector<Finding>& findings) {
  bool color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.topic.size());
  for (const Finding& finding : findings) {
    fmt::print("{}{:8}{} {:{}}  {}\n", color ? Color(finding.level) : "", LevelName(finding.level),
               color ? "\033[0m" : "", finding.topic, width, finding.message);
    if (!finding.fix.empty()) fmt::print("{:{}}  -> {}\n", "", 9 + width, finding.fix);
  }
}

}  // namespace

int RunDoctor(const DoctorCommand& command) {
  std::vector<Finding> findings = engine::Examine(command.config);
  auto count = [&](Level level) {
    return std::count_if(findings.begin(), findings.end(),
                         [level](const Finding& finding) { return finding.level == level; });
  };
  auto problems = count(Level::kProblem), warnings = count(Level::kWarning);
  if (command.json) {
    boost::json::array list;
    for (const Finding& f : findings)
      list.push_back(boost::json::object{{"level", LevelName(f.level)},
                                         {"topic", f.topic},
                                         {"message", f.message},
                                         {"fix", f.fix}});
    fmt::print("{}\n", boost::json::serialize(list));
  } else {
    PrintFindings(findings);
    if (problems)
      fmt::print("\nSandboxes cannot run here: {} problem{} to solve.\n", problems,
                 problems == 1 ? "" : "s");
    else if (warnings)
      fmt::print("\nSandboxes can run here, with {} limitation{}.\n", warnings,
                 warnings == 1 ? "" : "s");
    else
      fmt::print("\nEverything is there. Sandboxes can run on this machine.\n");
  }
  return problems ? 1 : 0;
}

}  // namespace caisson::cli

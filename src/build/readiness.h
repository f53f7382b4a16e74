// Whether a version can be put into service somewhere else, and how: from its row and its files
// alone. docs/builds.md has the rules.
#pragma once

#include <string>
#include <vector>

#include "build/file_change.h"
#include "store/build_rows.h"

namespace caisson::build {

struct Issue {
  std::string code;  // "not_ready", "checks_skipped", "secret_in_file", "no_build_script", ...
  std::string message;
  std::string path;  // of the file it is about, "" if it is about none
  int64_t line = 0;  // in it, from 1
};
struct DeployPath {
  std::string target;  // "static", "node", "python", "binary", "container"
  std::vector<std::string> install;
  std::string build, start;  // command lines, "" = none is needed
  std::string directory;     // that is served, of "static"
};
struct Readiness {
  std::vector<Issue> blocking, warnings;
  DeployPath path;
};

// All but the secrets, which take time to look for.
Readiness Judge(const store::BuildRow& build, const Files& files);
// Lines that hold a token or a password, at most `limit`; never what they hold.
std::vector<Issue> FindSecrets(const std::string& path, std::string_view content, size_t limit);

}  // namespace caisson::build

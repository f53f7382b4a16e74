// What package.json says, as far as builds need it. Generated or guests' files: nothing of it gets
// into a command but the name of a file that exists.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "build/file_change.h"

namespace caisson::build {

struct NodePackage {
  std::map<std::string, std::string, std::less<>> scripts;  // only texts
  std::set<std::string, std::less<>> dependencies;          // those for development, too
  std::string main;
  std::string manager;  // "npm", "pnpm", "yarn"; "" = not said

  // The file that node runs: "main", or one with a usual name. "" if there is none.
  std::string Entry(const Files& files) const;
};

// Nothing if there is no package.json or it is no JSON object.
std::optional<NodePackage> ReadNodePackage(const Files& files);

}  // namespace caisson::build

// What `caisson build` was asked to do.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "cli/server_access.h"

namespace caisson::cli {

struct CreateBuild {
  std::string project;
  std::string directory;  // whose files are built, "" = the goal says what
  std::string goal, runner, agent, parent;
  std::map<std::string, std::string> env;
  bool watch = false;
};
struct ListBuilds {
  std::string project, state;  // "" = any
};
struct ShowBuild {
  std::string id;
};
struct ShowBuildLog {
  std::string id;
  bool follow = false;
};
struct RollBackBuild {
  std::string id, version;
};
struct DiffBuild {
  std::string id, against;  // "" = the version before
};
struct CancelBuild {
  std::string id;
};
struct DeleteBuild {
  std::string id;
};
struct DownloadBuild {
  std::string id, file;  // "-" = standard output
};
using BuildAction = std::variant<ListBuilds, CreateBuild, ShowBuild, ShowBuildLog, RollBackBuild,
                                 DiffBuild, CancelBuild, DeleteBuild, DownloadBuild>;
struct BuildCommand {
  ServerAccess server;
  bool json = false;
  BuildAction action;
};

}  // namespace caisson::cli

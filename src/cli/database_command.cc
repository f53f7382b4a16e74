#include "cli/database_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdio>

#include "cli/data_dir.h"
#include "cli/privileges.h"
#include "cli/table.h"
#include "store/backup.h"
#include "store/migrations.h"
#include "store/open_database.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;
using Action = DatabaseCommand::Action;

// A step may rewrite a large table.
constexpr std::chrono::milliseconds kStepTimeout{3'600'000};
// A server that is just ending.
constexpr std::chrono::milliseconds kLockPatience{1'000};

void Print(const std::vector<store::SchemaStep>& steps, bool as_json) {
  json::array list;
  std::vector<std::vector<std::string>> rows;
  for (const store::SchemaStep& step : steps) {
    std::string applied = step.applied_at ? FormatTime(*step.applied_at) : "";
    list.push_back(
        json::object{{"version", step.version},
                     {"name", step.name},
                     {"appliedAt", step.applied_at ? json::value(applied) : json::value(nullptr)}});
    rows.push_back({std::to_string(step.version), step.name, applied.empty() ? "no" : applied});
  }
  if (as_json)
    fmt::print("{}\n", json::serialize(list));
  else
    fmt::print("{}", FormatTable({"STEP", "WHAT", "APPLIED"}, rows));
}

Status Act(const DatabaseCommand& command, store::Database& database) {
  if (command.action == Action::kBackup) return store::Backup(database, command.file);
  if (command.action == Action::kMigrate) TRY(store::Migrate(database));
  if (command.action == Action::kRollback) {
    TRY_ASSIGN(int64_t current, store::SchemaVersion(database));
    if (command.version >= current)
      return Fail(Code::kInvalidArgument, "the schema is at version {}: roll back to an older one",
                  current);
    TRY(store::Migrate(database, command.version));
  }
  TRY_ASSIGN(auto steps, store::ListSchema(database));
  Print(steps, command.json);
  return {};
}

// Whose database it is: the user of the server that made it, whatever the settings here say. A
// server that runs must not lose its files to another one.
void KeepOwner(const std::string& dir, ServerUser& user) {
  struct stat info{};
  if (dir.empty() || stat(dir.c_str(), &info) || info.st_uid == 0) return;
  user.uid = info.st_uid;
  user.gid = info.st_gid;
}

Status RunOrFail(const DatabaseCommand& command) {
  if (geteuid() != 0)
    return Fail(Code::kPermissionDenied,
                "caisson database needs root: the database is the server's");
  TRY_ASSIGN(ServerUser user, FindServerUser(command.config.user));
  DatabasePath path = FindDatabase(command.config.database_url);
  std::string file = path.dir + "/" + path.file;
  if (command.action == Action::kBackup && !path.dir.empty() && access(file.c_str(), F_OK))
    return FailErrno("copying {}", file);
  KeepOwner(path.dir, user);
  TRY(PrepareDataDir(command.config, user));
  // A server that runs expects the schema it has started with.
  UniqueFd lock;
  if (command.action == Action::kRollback) {
    TRY_ASSIGN(lock, LockDataDir(command.config, kLockPatience));
  }
  Status done;
  {
    TRY_ASSIGN(auto database, store::OpenDatabase(command.config.database_url,
                                                  {.statement_timeout = kStepTimeout}));
    done = Act(command, *database);
  }
  // Files that were made now are root's: the server needs them.
  TRY(PrepareDataDir(command.config, user));
  return done;
}

}  // namespace

int RunDatabaseCommand(const DatabaseCommand& command) {
  Status done = RunOrFail(command);
  if (done) return 0;
  fmt::print(stderr, "caisson: {}\n", done.error().message());
  return 1;
}

}  // namespace caisson::cli

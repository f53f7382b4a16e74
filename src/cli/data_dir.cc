#include "cli/data_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

namespace caisson::cli {
namespace {

namespace fs = std::filesystem;

Status MakeDir(const std::string& path, mode_t mode, uid_t uid, gid_t gid) {
  if (mkdir(path.c_str(), mode) && errno != EEXIST) return FailErrno("creating {}", path);
  // SECURITY: never through a symbolic link: this runs as root.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return FailErrno("opening {}", path);
  if (fchown(fd.get(), uid, gid) || fchmod(fd.get(), mode)) return FailErrno("preparing {}", path);
  return {};
}

// The database may have been written by another user before (the setting changed).
Status GiveFiles(const std::string& dir, const ServerUser& user) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(dir, ec))
    if (lchown(entry.path().c_str(), user.uid, user.gid))
      return FailErrno("giving {} to {}", entry.path().string(), user.name);
  if (ec) return Fail(Code::kInternal, "reading {}: {}", dir, ec.message());
  return {};
}

}  // namespace

Status PrepareDataDir(const Config& config, const ServerUser& user) {
  std::error_code ec;
  fs::create_directories(config.data_dir, ec);
  if (ec) return Fail(Code::kInternal, "creating {}: {}", config.data_dir, ec.message());
  // Everybody may pass through (the server user must), nobody may look around. The owner stays: it
  // may be the person who prepared the templates.
  if (chmod(config.data_dir.c_str(), 0711)) return FailErrno("preparing {}", config.data_dir);
  std::string templates = config.data_dir + "/templates";
  if (config.template_dir == templates && mkdir(templates.c_str(), 0755) && errno != EEXIST)
    return FailErrno("creating {}", templates);
  if (config.tls == "auto") TRY(MakeDir(config.data_dir + "/tls", 0755, 0, 0));

  DatabasePath database = FindDatabase(config.database_url);
  if (database.dir.empty()) return {};
  if (database.dir != config.data_dir + "/db" && fs::exists(database.dir, ec)) return {};
  fs::create_directories(fs::path(database.dir).parent_path(), ec);
  TRY(MakeDir(database.dir, 0700, user.uid, user.gid));
  return GiveFiles(database.dir, user);
}

Result<UniqueFd> LockDataDir(const Config& config, std::chrono::milliseconds patience) {
  std::string path = config.data_dir + "/lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return FailErrno("opening {}", path);
  auto end = std::chrono::steady_clock::now() + patience;
  // Not flock(2): that one would be inherited by the engine process and outlive this one.
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  while (fcntl(fd.get(), F_SETLK, &whole)) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) return FailErrno("locking {}", path);
    if (std::chrono::steady_clock::now() >= end)
      return Fail(Code::kAlreadyExists,
                  "another Caisson server is running on {}: stop it first, or choose another "
                  "directory with --data-dir",
                  config.data_dir);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return fd;
}

DatabasePath FindDatabase(const std::string& url) {
  constexpr std::string_view kSqlite = "sqlite:///";
  if (!url.starts_with(kSqlite)) return {};
  fs::path path = fs::path("/" + url.substr(kSqlite.size())).lexically_normal();
  return {path.parent_path().string(), path.filename().string()};
}

}  // namespace caisson::cli

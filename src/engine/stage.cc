#include "engine/stage.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/mount.h"

namespace caisson::engine {
namespace {

// Directories that everybody may enter and that hold nothing we look for, unless somebody keeps the
// data there. (Not in /proc or /sys: the kernel lets a sandbox have its own only where nothing of
// the host's is covered.)
constexpr const char* kPlaces[] = {"/boot", "/media", "/mnt", "/srv", "/opt"};

Result<std::string> ChoosePlace(const Config& config) {
  for (std::string place : kPlaces) {
    bool ours = false;
    for (const std::string& path : {config.data_dir, config.template_dir, config.criu})
      ours = ours || path.starts_with(place + "/");
    if (!ours && access(place.c_str(), F_OK) == 0) return place;
  }
  return Fail(Code::kFailedPrecondition, "there is no directory to cover: {}",
              fmt::join(kPlaces, ", "));
}

Result<std::string> MakeFile(std::string path, std::string_view text) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return FailErrno("writing {}", path);
  return path;
}

Result<std::string> MakeDirectory(std::string path) {
  if (mkdir(path.c_str(), 0755)) return FailErrno("creating {}", path);
  return path;
}

}  // namespace

Result<Stage> Stage::Make(const Config& config) {
  TRY_ASSIGN(std::string place, ChoosePlace(config));
  if (mount("tmpfs", place.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m"))
    return FailErrno("making a place for what CRIU needs");
  Stage stage;
  stage.place_ = std::move(place);
  return stage;
}

Stage::Stage(Stage&& other) noexcept
    : place_(std::exchange(other.place_, {})), mounts_(std::move(other.mounts_)) {}

Stage::~Stage() {
  if (place_.empty()) return;
  for (const std::string& path : mounts_) umount2(path.c_str(), MNT_DETACH);
  umount2(place_.c_str(), MNT_DETACH);
}

std::string Stage::PathOf(const char* name) const { return fmt::format("{}/{}", place_, name); }

Result<std::string> Stage::AddMount(const char* name, int mount) {
  TRY_ASSIGN(std::string path, MakeDirectory(PathOf(name)));
  TRY(Attach(mount, path.c_str()));
  mounts_.push_back(path);
  return path;
}

// SECURITY: CRIU makes only the first of several mounts of one thing read-only; the others are what
// their source is.
Result<std::string> Stage::Show(const std::string& source, std::string path) {
  TRY_ASSIGN(UniqueFd mount, CloneMount(AT_FDCWD, source.c_str()));
  TRY(MakeReadOnly(mount.get()));
  TRY(Attach(mount.get(), path.c_str()));
  mounts_.push_back(path);
  return path;
}

Result<std::string> Stage::AddFile(const char* name, const std::string& source) {
  TRY_ASSIGN(std::string path, MakeFile(PathOf(name), ""));
  return Show(source, std::move(path));
}

Result<std::string> Stage::AddText(const char* name, std::string_view text) {
  TRY_ASSIGN(std::string path, MakeFile(PathOf(name), text));
  return Show(path, path);
}

Result<std::string> Stage::AddEmptyDirectory(const char* name) {
  TRY_ASSIGN(std::string path, MakeDirectory(PathOf(name)));
  return Show(path, path);
}

}  // namespace caisson::engine

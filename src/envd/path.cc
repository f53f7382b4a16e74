#include "envd/path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "base/text.h"
#include "envd/proto_json.h"

namespace caisson::envd {

std::string CleanPath(std::string_view path) {
  bool absolute = path.starts_with('/');
  std::vector<std::string_view> parts;
  for (std::string_view part : Split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (!absolute) {
      parts.push_back(part);
    }
  }
  std::string out = absolute ? "/" : "";
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += '/';
    out += parts[i];
  }
  return out.empty() ? "." : out;
}

std::string DirName(std::string_view path) {
  // As Go does it: "/a/b/" has the directory "/a/b".
  size_t slash = path.rfind('/');
  return CleanPath(path.substr(0, slash == std::string_view::npos ? 0 : slash + 1));
}

std::string BaseName(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path.empty()) return ".";
  if (path == "/") return "/";
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  return CleanPath(std::string(directory) + '/' + std::string(name));
}

Result<std::string> ResolvePath(std::string_view path, const User& user, std::string_view workdir) {
  TRY(CheckNoNul(path, "the path"));
  if (path.empty()) path = workdir;
  if (path.starts_with('~')) {
    if (path.size() > 1 && path[1] != '/' && path[1] != '\\')
      return Fail(Code::kInvalidArgument,
                  "failed to expand path '{}' for user '{}': cannot expand user-specific home dir",
                  path, user.name);
    return JoinPath(user.home, path.substr(1));
  }
  if (path.starts_with('/')) return std::string(path);
  return JoinPath(user.home, path);
}

Status ChownPath(const std::string& path, const User& user) {
  if (chown(path.c_str(), user.uid, user.gid) == 0) return {};
  int error = errno;
  struct stat st{};
  if (stat(path.c_str(), &st) == 0 && st.st_uid == user.uid && st.st_gid == user.gid) return {};
  errno = error;
  return FailErrno("cannot give '{}' to user '{}'", path, user.name);
}

Status EnsureDirs(const std::string& path, const User& user) {
  struct stat st{};
  if (stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode)) return {};
    return Fail(Code::kInternal, "path is a file: {}", path);
  }
  if (errno != ENOENT) return FailErrno("cannot look at directory '{}'", path);
  std::string parent = DirName(path);
  if (parent != path) TRY(EnsureDirs(parent, user));
  if (mkdir(path.c_str(), 0755) == 0) return ChownPath(path, user);
  int error = errno;
  // "a/" after "a", or somebody was faster.
  if (error == EEXIST && stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return {};
  errno = error;
  return FailErrno("cannot create directory '{}'", path);
}

}  // namespace caisson::envd

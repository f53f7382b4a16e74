#include "envd/list_dir.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <memory>
#include <vector>

#include "envd/entry.h"
#include "envd/path.h"

namespace caisson::envd {
namespace {

Result<std::vector<std::string>> ReadNames(const std::string& path, size_t limit) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(path.c_str()), closedir);
  if (!dir) return FailErrno("error reading directory {}", path);
  std::vector<std::string> names;
  while (dirent* item = readdir(dir.get())) {
    std::string_view name = item->d_name;
    if (name == "." || name == "..") continue;
    if (names.size() >= limit)
      return Fail(Code::kResourceExhausted, "directory {} has more than {} entries", path, limit);
    names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

Status CheckDirectory(const std::string& path) {
  struct stat st{};
  if (stat(path.c_str(), &st) != 0) {
    if (errno == ENOENT) return Fail(Code::kNotFound, "directory not found: {}", path);
    if (errno == ELOOP) return Fail(Code::kFailedPrecondition, "cyclic symlink at {}", path);
    return FailErrno("cannot look at {}", path);
  }
  if (!S_ISDIR(st.st_mode))
    return Fail(Code::kInvalidArgument, "path is not a directory: {}", path);
  return {};
}

}  // namespace

Result<boost::json::object> ListDirectory(const ListOptions& options, const Accounts& accounts) {
  TRY(CheckDirectory(options.path));
  // One arena for the whole answer: a big listing is given back to the system as a whole.
  auto storage = boost::json::make_shared_resource<boost::json::monotonic_resource>();
  boost::json::array entries(storage);
  struct Pending {
    std::string path;
    uint32_t depth;
  };
  // A stack of what is still to be told, next on top: that makes it depth-first and in order.
  std::vector<Pending> stack;
  auto push = [&](const std::string& directory, uint32_t depth) -> Status {
    TRY_ASSIGN(auto names, ReadNames(directory, options.max_entries - entries.size()));
    for (auto name = names.rbegin(); name != names.rend(); ++name)
      stack.push_back({JoinPath(directory, *name), depth});
    return {};
  };
  TRY(push(options.path, 1));
  while (!stack.empty()) {
    Pending next = std::move(stack.back());
    stack.pop_back();
    if (entries.size() >= options.max_entries)
      return Fail(Code::kResourceExhausted, "{} has more than {} entries", options.path,
                  options.max_entries);
    auto entry = ReadEntry(next.path, accounts);
    if (!entry && entry.error().code() == Code::kNotFound) continue;  // gone in the meantime
    TRY(entry);
    entries.push_back(ToJson(*entry, options.legacy, storage));
    bool descend =
        entry->type == FileType::kDirectory && !entry->is_symlink && next.depth < options.depth;
    if (!descend) continue;
    Status pushed = push(next.path, next.depth + 1);
    if (!pushed && pushed.error().code() != Code::kNotFound) return tl::unexpected(pushed.error());
  }
  boost::json::object out(storage);
  if (!entries.empty()) out["entries"] = std::move(entries);
  return out;
}

}  // namespace caisson::envd

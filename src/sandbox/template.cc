#include "sandbox/template.h"

#include <sys/stat.h>

#include <boost/json.hpp>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"

namespace caisson::sandbox {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr int64_t kMaxNumber = int64_t{1} << 40;

bool IsName(std::string_view name) {
  if (name.empty() || name.size() > 128) return false;
  for (char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.'))
      return false;
  return true;
}

// Reads one field of template.json, if it is there, into `out`.
Status Take(const json::object& object, std::string_view name, std::string& out) {
  const json::value* value = object.if_contains(name);
  if (!value) return {};
  if (!value->is_string()) return Fail(Code::kInvalidArgument, "{} must be a string", name);
  out = value->get_string();
  return {};
}

Status Take(const json::object& object, std::string_view name, int64_t& out) {
  const json::value* value = object.if_contains(name);
  if (!value) return {};
  if (!value->is_int64() || value->get_int64() <= 0 || value->get_int64() > kMaxNumber)
    return Fail(Code::kInvalidArgument, "{} must be a positive integer", name);
  out = value->get_int64();
  return {};
}

Status TakeAliases(const json::object& object, std::vector<std::string>& out) {
  const json::value* value = object.if_contains("aliases");
  if (!value) return {};
  if (!value->is_array()) return Fail(Code::kInvalidArgument, "aliases must be a list of names");
  for (const json::value& item : value->get_array()) {
    if (!item.is_string() || !IsName(item.get_string()))
      return Fail(Code::kInvalidArgument, "aliases must be names of [a-z0-9-_.]");
    out.emplace_back(item.get_string());
  }
  return {};
}

Status TakeEnv(const json::object& object, std::map<std::string, std::string>& out) {
  const json::value* value = object.if_contains("env");
  if (!value) return {};
  if (!value->is_object()) return Fail(Code::kInvalidArgument, "env must be an object");
  for (const auto& [name, item] : value->get_object()) {
    if (!item.is_string()) return Fail(Code::kInvalidArgument, "env.{} must be a string", name);
    out.emplace(name, item.get_string());
  }
  return {};
}

Status TakeTools(const json::object& object, std::vector<Tool>& out) {
  const json::value* value = object.if_contains("tools");
  if (!value) return {};
  if (!value->is_array()) return Fail(Code::kInvalidArgument, "tools must be a list");
  for (const json::value& item : value->get_array()) {
    Tool tool;
    if (!item.is_object()) return Fail(Code::kInvalidArgument, "tools must be objects");
    TRY(Take(item.get_object(), "name", tool.name));
    TRY(Take(item.get_object(), "version", tool.version));
    if (tool.name.empty()) return Fail(Code::kInvalidArgument, "each of tools must have a name");
    out.push_back(std::move(tool));
  }
  return {};
}

Result<Template> Parse(const std::string& text) {
  boost::system::error_code ec;
  json::value value = json::parse(text, ec);
  if (ec || !value.is_object()) return Fail(Code::kInvalidArgument, "it is not a JSON object");
  const json::object& object = value.get_object();
  Template parsed;
  TRY(Take(object, "id", parsed.id));
  if (!IsName(parsed.id)) return Fail(Code::kInvalidArgument, "id must be a name of [a-z0-9-_.]");
  TRY(TakeAliases(object, parsed.aliases));
  TRY(Take(object, "cpuCount", parsed.cpus));
  TRY(Take(object, "memoryMB", parsed.memory_mb));
  TRY(Take(object, "diskSizeMB", parsed.disk_mb));
  TRY(Take(object, "pids", parsed.pids));
  TRY(Take(object, "openFiles", parsed.open_files));
  if (int64_t kbps = 0; object.contains("outputKBps")) {
    TRY(Take(object, "outputKBps", kbps));
    parsed.output_kbps = kbps;
  }
  TRY(Take(object, "user", parsed.user));
  TRY(Take(object, "workdir", parsed.workdir));
  TRY(Take(object, "workspace", parsed.workspace));
  if (!parsed.workspace.empty() &&
      (!parsed.workspace.starts_with('/') || parsed.workspace.ends_with('/')))
    return Fail(Code::kInvalidArgument, "workspace must be a path like /srv/work");
  TRY(TakeEnv(object, parsed.env));
  TRY(TakeTools(object, parsed.tools));
  return parsed;
}

Result<Template> Read(const fs::path& directory) {
  std::string file = (directory / "template.json").string();
  TRY_ASSIGN(std::string text, ReadFile(file, 1 << 20));
  auto parsed = Parse(text);
  if (!parsed) return tl::unexpected(std::move(parsed).error().Context(file));
  std::error_code ec;
  fs::path root = fs::canonical(directory / "rootfs", ec);
  if (ec || !fs::is_directory(root, ec))
    return Fail(Code::kNotFound, "{}: there is no directory rootfs beside it", file);
  parsed->root_dir = root.string();
  struct stat info{};
  if (stat(file.c_str(), &info)) return FailErrno("stat {}", file);
  parsed->created_at =
      FromUnixNanos(int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec);
  return parsed;
}

}  // namespace

Result<TemplateCatalog> TemplateCatalog::Load(const std::string& dir) {
  std::error_code ec;
  std::vector<fs::path> directories;
  for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec))
    if (std::error_code missing; fs::exists(it->path() / "template.json", missing))
      directories.push_back(it->path());
  if (ec)
    return Fail(Code::kNotFound, "the directory of templates {} cannot be read: {}", dir,
                ec.message());
  std::sort(directories.begin(), directories.end());  // the same order on every machine

  TemplateCatalog catalog;
  for (const fs::path& directory : directories) {
    TRY_ASSIGN(Template found, Read(directory));
    std::vector<std::string> names = found.aliases;
    names.push_back(found.id);
    for (const std::string& name : names)
      if (const Template* other = catalog.Find(name))
        return Fail(Code::kAlreadyExists, "{}: the name '{}' is taken by template '{}'",
                    (directory / "template.json").string(), name, other->id);
    catalog.templates_.push_back(std::move(found));
  }
  return catalog;
}

const Template* TemplateCatalog::Find(std::string_view name) const {
  std::string wanted = ToLower(Trim(name));
  if (wanted.ends_with(":default")) wanted.resize(wanted.size() - 8);
  for (const Template& one : templates_)
    if (one.id == wanted ||
        std::find(one.aliases.begin(), one.aliases.end(), wanted) != one.aliases.end())
      return &one;
  return nullptr;
}

}  // namespace caisson::sandbox

#include "build/file_change.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::build {
namespace {

namespace json = boost::json;

constexpr size_t kMaxPath = 1'024;
constexpr size_t kMaxPart = 255;  // what ext4 takes
constexpr size_t kShownPath = 120;

// A path as errors quote it: what is wrong with it must not break the sentence.
std::string Shown(std::string_view path) {
  std::string text = ToUtf8(path.substr(0, kShownPath));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return path.size() > kShownPath ? text + "…" : text;
}

Status CheckPart(std::string_view part, std::string_view path) {
  if (part.empty())
    return Fail(Code::kInvalidArgument, "the path \"{}\" has an empty part", Shown(path));
  if (part == "." || part == "..")
    return Fail(Code::kInvalidArgument, "the path \"{}\" must not hold \".\" or \"..\"",
                Shown(path));
  if (part.size() > kMaxPart)
    return Fail(Code::kInvalidArgument, "the path \"{}\" has a name of more than {} bytes",
                Shown(path), kMaxPart);
  // SECURITY: hooks and settings of git are programs that others would run.
  if (EqualsIgnoreCase(part, ".git"))
    return Fail(Code::kInvalidArgument, "the path \"{}\" leads into git's own files", Shown(path));
  return {};
}

Result<bool> IsDeletion(const json::object& object, std::string_view path) {
  bool deletes = false;
  if (const json::value* flag = object.if_contains("delete")) {
    if (!flag->is_bool())
      return Fail(Code::kInvalidArgument, "delete of \"{}\" must be true or false", Shown(path));
    deletes = flag->get_bool();
  }
  const json::value* type = object.if_contains("change_type");
  if (!type || type->is_null()) return deletes;
  constexpr std::array kTypes = {"create", "modify", "delete"};
  if (!type->is_string() || std::ranges::find(kTypes, type->get_string()) == kTypes.end())
    return Fail(Code::kInvalidArgument,
                "change_type of \"{}\" must be \"create\", \"modify\" or \"delete\"", Shown(path));
  return deletes || type->get_string() == "delete";
}

Result<std::string> ContentOf(const json::value& value, std::string_view path) {
  if (!value.is_string())
    return Fail(Code::kInvalidArgument, "new_content of \"{}\" must be a text", Shown(path));
  const json::string& text = value.get_string();
  if (text.find('\0') != json::string::npos)
    return Fail(Code::kInvalidArgument, "new_content of \"{}\" must not hold a zero byte",
                Shown(path));
  return std::string(text);
}

Result<std::string> BytesOf(const json::value& value, std::string_view path) {
  auto bytes = value.is_string() ? Base64Decode(value.get_string()) : std::nullopt;
  if (!bytes)
    return Fail(Code::kInvalidArgument, "new_content_base64 of \"{}\" must be a text in base64",
                Shown(path));
  return std::move(*bytes);
}

const json::value* ValueIn(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_null() ? nullptr : value;
}

Result<FileChange> ParseObject(const json::object& object, std::string path) {
  FileChange change{.path = std::move(path), .new_content = {}};
  TRY(CheckPath(change.path));
  const json::value* content = ValueIn(object, "new_content");
  const json::value* bytes = ValueIn(object, "new_content_base64");
  TRY_ASSIGN(bool deletes, IsDeletion(object, change.path));
  if (content && bytes)
    return Fail(Code::kInvalidArgument, "\"{}\" has new_content and new_content_base64",
                Shown(change.path));
  if (deletes && (content || bytes))
    return Fail(Code::kInvalidArgument, "\"{}\" has new_content and is deleted at the same time",
                Shown(change.path));
  if (deletes) return change;
  if (bytes) {
    TRY_ASSIGN(change.new_content, BytesOf(*bytes, change.path));
    return change;
  }
  if (!content && object.contains("content"))
    return Fail(Code::kInvalidArgument,
                "\"{}\" has a field \"content\"; the field is named \"new_content\"",
                Shown(change.path));
  if (!content)
    return Fail(Code::kInvalidArgument, "\"{}\" has neither new_content nor \"delete\": true",
                Shown(change.path));
  TRY_ASSIGN(change.new_content, ContentOf(*content, change.path));
  return change;
}

// One entry of an object whose names are paths: a content, or a change.
Result<FileChange> ParseEntry(const std::string& path, const json::value& value) {
  if (const json::object* object = value.if_object()) {
    const json::value* inner = object->if_contains("path");
    if (inner && (!inner->is_string() || std::string_view(inner->get_string()) != path))
      return Fail(Code::kInvalidArgument, "the change of \"{}\" names another path", Shown(path));
    return ParseObject(*object, path);
  }
  if (!value.is_string())
    return Fail(Code::kInvalidArgument, "\"{}\" must be a text or an object with new_content",
                Shown(path));
  FileChange change{.path = path, .new_content = {}};
  TRY(CheckPath(path));
  TRY_ASSIGN(change.new_content, ContentOf(value, path));
  return change;
}

std::string_view Extension(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  size_t dot = name.rfind('.');
  return dot == name.npos ? "" : name.substr(dot);
}

// Files that a browser or node runs as they are, and those that only a build step makes runnable.
bool IsScript(std::string_view path) {
  constexpr std::array kScripts = {".js", ".mjs", ".cjs"};
  return std::ranges::find(kScripts, Extension(path)) != kScripts.end();
}
bool NeedsCompiler(std::string_view path) {
  constexpr std::array kSources = {".ts", ".tsx", ".jsx", ".mts", ".cts", ".vue", ".svelte"};
  return std::ranges::find(kSources, Extension(path)) != kSources.end();
}

// Scripts of a page or of a server in another language need no packages.
bool HasAnotherHome(const Files& files) {
  return std::ranges::any_of(files, [](const auto& file) {
    std::string_view path = file.first;
    return path == "go.mod" || path == "Cargo.toml" || path.ends_with(".py") ||
           path == "index.html" || path.ends_with("/index.html");
  });
}

Status CheckScripts(const Files& files) {
  if (files.contains("package.json")) return {};
  bool at_home = HasAnotherHome(files);
  for (const auto& [path, content] : files)
    if (NeedsCompiler(path) || (IsScript(path) && !at_home))
      return Fail(Code::kInvalidArgument,
                  "\"{}\" is JavaScript or TypeScript, but there is no package.json", Shown(path));
  return {};
}

Status CheckParents(const Files& files) {
  for (const auto& [path, content] : files)
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      if (files.contains(path.substr(0, slash)))
        return Fail(Code::kInvalidArgument, "\"{}\" is a file and a directory at the same time",
                    Shown(path.substr(0, slash)));
  return {};
}

}  // namespace

bool IsText(std::string_view content) {
  return content.find('\0') == content.npos && ToUtf8(content) == content;
}

Status CheckPath(std::string_view path) {
  if (path.empty()) return Fail(Code::kInvalidArgument, "a path must not be empty");
  if (path.size() > kMaxPath)
    return Fail(Code::kInvalidArgument, "the path \"{}\" has more than {} bytes", Shown(path),
                kMaxPath);
  if (path.front() == '/')
    return Fail(Code::kInvalidArgument, "the path \"{}\" must be relative to the workspace",
                Shown(path));
  if (path.find('\\') != path.npos)
    return Fail(Code::kInvalidArgument, "the path \"{}\" must have \"/\" between its parts",
                Shown(path));
  bool plain = std::ranges::none_of(path, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (!plain || ToUtf8(path) != path)
    return Fail(Code::kInvalidArgument, "the path \"{}\" holds characters that no name may have",
                Shown(path));
  for (std::string_view part : Split(path, '/')) TRY(CheckPart(part, path));
  return {};
}

Result<FileChange> ParseFileChange(const json::value& value) {
  const json::object* object = value.if_object();
  if (!object)
    return Fail(Code::kInvalidArgument, "a change must be an object with path and new_content");
  const json::value* path = object->if_contains("path");
  if (!path || !path->is_string())
    return Fail(Code::kInvalidArgument, "a change must have a path, which is a text");
  return ParseObject(*object, std::string(path->get_string()));
}

Result<std::vector<FileChange>> ParseFileChanges(const json::value& value) {
  std::vector<FileChange> changes;
  if (const json::array* list = value.if_array()) {
    for (const json::value& item : *list) {
      TRY_ASSIGN(FileChange change, ParseFileChange(item));
      changes.push_back(std::move(change));
    }
    return changes;
  }
  const json::object* object = value.if_object();
  if (!object)
    return Fail(Code::kInvalidArgument,
                "files must be a list of changes, or an object of path and content");
  for (const auto& [path, content] : *object) {
    TRY_ASSIGN(FileChange change, ParseEntry(std::string(path), content));
    changes.push_back(std::move(change));
  }
  return changes;
}

Status CheckFiles(const Files& files, const Config& config) {
  if (files.empty()) return Fail(Code::kInvalidArgument, "there are no files");
  if (std::ssize(files) > config.build_max_files)
    return Fail(Code::kInvalidArgument, "there are {} files, at most {} are allowed", files.size(),
                config.build_max_files);
  int64_t total = 0;
  for (const auto& [path, content] : files) {
    TRY(CheckPath(path));
    if (std::ssize(content) > config.build_max_file_bytes)
      return Fail(Code::kInvalidArgument, "\"{}\" has {} bytes, at most {} are allowed",
                  Shown(path), content.size(), config.build_max_file_bytes);
    total += std::ssize(content);
  }
  if (total > config.build_max_total_bytes)
    return Fail(Code::kInvalidArgument, "the files have {} bytes, at most {} are allowed", total,
                config.build_max_total_bytes);
  TRY(CheckParents(files));
  return CheckScripts(files);
}

Result<Files> Apply(Files files, const std::vector<FileChange>& changes) {
  for (const FileChange& change : changes) {
    TRY(CheckPath(change.path));
    if (change.new_content)
      files[change.path] = *change.new_content;
    else
      files.erase(change.path);
  }
  return files;
}

}  // namespace caisson::build

// Templates on disk: <template_dir>/<name>/template.json and <name>/rootfs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"

namespace caisson::sandbox {

// A program that a template has inside.
struct Tool {
  std::string name, version;
};

struct Template {
  std::string id;
  std::vector<std::string> aliases;
  std::string root_dir;  // absolute; read-only for sandboxes
  int64_t cpus = 0;      // 0: the server's default
  int64_t memory_mb = 0;
  int64_t disk_mb = 0;
  int64_t pids = 0;
  int64_t open_files = 0;
  std::optional<int64_t> output_kbps;  // 0 = unlimited; none: the server's default
  std::string user = "user";
  std::string workdir;    // "" = the user's home
  std::string workspace;  // where work happens inside; "" = where the server's settings say
  std::map<std::string, std::string> env;
  std::vector<Tool> tools;
  Time created_at;  // when its template.json was written
};

// Read once at the start: {"id","aliases":[],"cpuCount","memoryMB","diskSizeMB","pids","openFiles",
// "outputKBps","user","workdir","workspace","env":{},"tools":[{"name","version"}]}; only "id" is
// required. A template's directory may be a symbolic link. Directories without a template.json (one
// that is just being prepared) are no templates.
class TemplateCatalog {
 public:
  // Reads every template of `dir`. A broken one is an error that names its file.
  static Result<TemplateCatalog> Load(const std::string& dir);
  // By id or alias; ":default" is the same as no tag. Case and surrounding spaces do not matter.
  const Template* Find(std::string_view name) const;
  const std::vector<Template>& all() const { return templates_; }

 private:
  std::vector<Template> templates_;
};

}  // namespace caisson::sandbox

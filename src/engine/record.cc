#include "engine/record.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "base/file.h"
#include "base/text.h"

namespace caisson::engine {
namespace json = boost::json;
namespace {

Status WriteWhole(const std::string& path, std::string_view data) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return FailErrno("creating {}", path);
  ssize_t n = write(fd.get(), data.data(), data.size());
  if (n < 0 || static_cast<size_t>(n) != data.size()) return FailErrno("writing {}", path);
  return {};
}

json::object ToJson(const Record& record) {
  return {{"id", record.id},
          {"boot_id", record.boot_id},
          {"pid", record.pid},
          {"start_time", record.start_time},
          {"slot", record.slot},
          {"loop", record.loop},
          {"network", record.network == Network::kInternet},
          {"cpus", record.limits.cpus},
          {"memory_bytes", record.limits.memory_bytes},
          {"disk_bytes", record.limits.disk_bytes},
          {"pids", record.limits.pids},
          {"created_at", UnixNanos(record.created_at)}};
}

// Throws on a missing or wrong field; the caller turns that into an error.
Record FromJson(const json::object& o) {
  Record record;
  record.id = json::value_to<std::string>(o.at("id"));
  record.boot_id = json::value_to<std::string>(o.at("boot_id"));
  record.pid = o.at("pid").to_number<int>();
  record.start_time = o.at("start_time").to_number<uint64_t>();
  record.slot = o.at("slot").to_number<int>();
  record.loop = o.at("loop").to_number<int>();
  record.network = o.at("network").as_bool() ? Network::kInternet : Network::kNone;
  record.limits = {.cpus = o.at("cpus").to_number<int64_t>(),
                   .memory_bytes = o.at("memory_bytes").to_number<int64_t>(),
                   .disk_bytes = o.at("disk_bytes").to_number<int64_t>(),
                   .pids = o.at("pids").to_number<int64_t>()};
  record.created_at = FromUnixNanos(o.at("created_at").to_number<int64_t>());
  return record;
}

}  // namespace

RecordDir& RecordDir::operator=(RecordDir&& other) noexcept {
  if (this != &other) {
    (void)Remove();
    id_ = std::exchange(other.id_, {});
  }
  return *this;
}

RecordDir::~RecordDir() { (void)Remove(); }

Result<RecordDir> RecordDir::Create(const std::string& id) {
  RecordDir dir(id);
  if (mkdir(dir.path("").c_str(), 0700) == 0) return dir;
  int error = errno;
  dir.Keep();  // not ours to remove
  if (error == EEXIST)
    return Fail(Code::kAlreadyExists, "a sandbox with the id '{}' exists already", id);
  errno = error;
  return FailErrno("creating the directory of sandbox {}", id);
}

RecordDir RecordDir::Leftover(const std::string& id) { return RecordDir(id); }

Result<std::vector<std::string>> RecordDir::List() {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(kSandboxesDir), closedir);
  if (!dir) return FailErrno("reading the directory of sandboxes");
  std::vector<std::string> ids;
  while (dirent* entry = readdir(dir.get()))
    if (entry->d_name[0] != '.') ids.emplace_back(entry->d_name);
  return ids;
}

std::string RecordDir::path(const char* name) const {
  return fmt::format("{}/{}/{}", kSandboxesDir, id_, name);
}

Status RecordDir::Write(const Record& record) const {
  std::string final = path("state.json"), temporary = path("state.json.tmp");
  TRY(WriteWhole(temporary, json::serialize(ToJson(record))));
  if (rename(temporary.c_str(), final.c_str())) return FailErrno("replacing {}", final);
  return {};
}

Result<Record> RecordDir::Read() const {
  TRY_ASSIGN(std::string text, ReadFile(path("state.json"), 64 << 10));
  try {
    Record record = FromJson(json::parse(text).as_object());
    if (record.id == id_) return record;
  } catch (const std::exception&) {
  }
  return Fail(Code::kDataLoss, "{} is damaged", path("state.json"));
}

Status RecordDir::MarkReady() const { return WriteWhole(path("ready"), ""); }

bool RecordDir::ready() const { return access(path("ready").c_str(), F_OK) == 0; }

Status RecordDir::Remove() {
  if (id_.empty()) return {};
  TRY(RemoveTree(fmt::format("{}/{}", kSandboxesDir, id_)));
  id_.clear();
  return {};
}

Result<std::string> ReadBootId() {
  TRY_ASSIGN(std::string text, ReadFile("/proc/sys/kernel/random/boot_id", 256));
  return std::string(Trim(text));
}

Result<uint64_t> ReadStartTime(int pid) {
  auto stat = ReadFile(fmt::format("/proc/{}/stat", pid), 8192);
  if (!stat) return Fail(Code::kNotFound, "there is no process {}", pid);
  // The name (field 2) may hold anything, so fields are counted from its closing parenthesis.
  size_t end = stat->rfind(')');
  if (end != std::string::npos) {
    auto fields = Split(std::string_view(*stat).substr(end + 2), ' ');  // the first one is field 3
    if (fields.size() > 19)
      if (auto ticks = ParseInt<uint64_t>(fields[19])) return *ticks;
  }
  return Fail(Code::kDataLoss, "/proc/{}/stat has an unknown form", pid);
}

}  // namespace caisson::engine

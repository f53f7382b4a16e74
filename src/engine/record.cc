#include "engine/record.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "engine/protocol.h"

namespace caisson::engine {
namespace {

constexpr size_t kMaxRecordBytes = 1 << 20;  // most of it rules
constexpr const char* kBuilding = ".building";
constexpr const char* kReady = ".json";
constexpr const char* kBootId = ".boot_id";

json::object ToJson(const Record& record) {
  return {{"id", record.id},
          {"boot_id", record.boot_id},
          {"pid", record.pid},
          {"start_time", record.start_time},
          {"slot", record.slot},
          {"loop", record.loop},
          {"egress", EncodeEgress(record.egress)},
          {"cpus", record.limits.cpus},
          {"memory_bytes", record.limits.memory_bytes},
          {"disk_bytes", record.limits.disk_bytes},
          {"pids", record.limits.pids},
          {"open_files", record.limits.open_files},
          {"created_at", UnixNanos(record.created_at)},
          {"root_dir", record.root_dir},
          {"envd", record.envd},
          {"inside_boot_id", record.inside_boot_id},
          {"layers", json::array(record.layers.begin(), record.layers.end())},
          {"why_frozen", record.why_frozen}};
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
  record.egress = DecodeEgress(o.at("egress")).value();
  record.limits = {.cpus = o.at("cpus").to_number<int64_t>(),
                   .memory_bytes = o.at("memory_bytes").to_number<int64_t>(),
                   .disk_bytes = o.at("disk_bytes").to_number<int64_t>(),
                   .pids = o.at("pids").to_number<int64_t>(),
                   .open_files = o.at("open_files").to_number<int64_t>()};
  record.created_at = FromUnixNanos(o.at("created_at").to_number<int64_t>());
  record.root_dir = json::value_to<std::string>(o.at("root_dir"));
  record.envd = json::value_to<std::string>(o.at("envd"));
  record.inside_boot_id = json::value_to<std::string>(o.at("inside_boot_id"));
  record.layers = json::value_to<std::vector<std::string>>(o.at("layers"));
  record.why_frozen = json::value_to<std::string>(o.at("why_frozen"));
  return record;
}

}  // namespace

RecordFile::RecordFile(RecordFile&& other) noexcept
    : id_(std::exchange(other.id_, {})), fd_(std::move(other.fd_)) {}

RecordFile& RecordFile::operator=(RecordFile&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(fd_, other.fd_);
  return *this;
}

RecordFile::~RecordFile() { (void)Remove(); }

std::string RecordFile::Path(const char* suffix) const {
  return fmt::format("{}/{}{}", kSandboxesDir, id_, suffix);
}

Result<RecordFile> RecordFile::Create(const std::string& id) {
  RecordFile file(id);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  bool exists = file.ready();
  if (!exists) file.fd_.Reset(open(file.Path(kBuilding).c_str(), kFlags, 0600));
  if (file.fd_) return file;
  int error = exists ? EEXIST : errno;
  file.Keep();  // not ours to remove
  if (error == EEXIST)
    return Fail(Code::kAlreadyExists, "a sandbox with the id '{}' exists already", id);
  errno = error;
  return FailErrno("creating the record of sandbox {}", id);
}

RecordFile RecordFile::Leftover(const std::string& id) { return RecordFile(id); }

Result<std::vector<std::string>> RecordFile::List() {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(kSandboxesDir), closedir);
  if (!dir) return FailErrno("reading the records of sandboxes");
  std::vector<std::string> ids;
  while (dirent* entry = readdir(dir.get())) {
    std::string_view name = entry->d_name;
    size_t dot = name.rfind('.');
    if (name.ends_with(kBuilding) || name.ends_with(kReady)) ids.emplace_back(name.substr(0, dot));
  }
  return ids;
}

Status RecordFile::Write(const Record& record) const {
  std::string text = json::serialize(ToJson(record));
  ssize_t n = pwrite(fd_.get(), text.data(), text.size(), 0);
  if (n < 0 || static_cast<size_t>(n) != text.size() || ftruncate(fd_.get(), n))
    return FailErrno("writing the record of sandbox {}", id_);
  return {};
}

std::string RecordFile::BootIdPath(const std::string& id) {
  return fmt::format("{}/{}{}", kSandboxesDir, id, kBootId);
}

Status RecordFile::MarkReady() const {
  if (rename(Path(kBuilding).c_str(), Path(kReady).c_str()))
    return FailErrno("naming the record of sandbox {}", id_);
  return {};
}

bool RecordFile::ready() const { return access(Path(kReady).c_str(), F_OK) == 0; }

Result<Record> RecordFile::Read() const {
  TRY_ASSIGN(std::string text, ReadFile(Path(ready() ? kReady : kBuilding), kMaxRecordBytes));
  try {
    Record record = FromJson(json::parse(text).as_object());
    if (record.id == id_) return record;
  } catch (const std::exception&) {
  }
  return Fail(Code::kDataLoss, "the record of sandbox {} is damaged", id_);
}

Status RecordFile::Remove() {
  if (id_.empty()) return {};
  for (const char* suffix : {kBootId, kBuilding, kReady})
    if (unlink(Path(suffix).c_str()) && errno != ENOENT)
      return FailErrno("removing the record of sandbox {}", id_);
  Keep();
  return {};
}

void RecordFile::Keep() {
  id_.clear();
  fd_.Reset();
}

Result<Record> ReadRecord(const std::string& id) {
  RecordFile file = RecordFile::Leftover(id);
  auto record = file.ready() ? file.Read() : Fail(Code::kNotFound, "there is no sandbox '{}'", id);
  file.Keep();
  return record;
}

std::string RecordPath(const std::string& id) {
  return fmt::format("{}/{}{}", kSandboxesDir, id, kReady);
}

Status AwaitUnlocked(const std::string& id, std::chrono::milliseconds timeout) {
  auto deadline = std::chrono::steady_clock::now() + timeout;
  UniqueFd fd(open(RecordPath(id).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return FailErrno("opening the record of sandbox {}", id);
  while (flock(fd.get(), LOCK_EX | LOCK_NB)) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return FailErrno("locking the record of sandbox {}", id);
    if (std::chrono::steady_clock::now() > deadline)
      return Fail(Code::kDeadlineExceeded, "sandbox '{}' is still being saved", id);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return {};
}

Status RewriteRecord(const Record& record) {
  // The lock is on the file that would be replaced.
  if (!AwaitUnlocked(record.id, std::chrono::milliseconds(0)))
    return Fail(Code::kAborted, "sandbox '{}' is still being saved", record.id);
  return WriteFileAtomic(RecordPath(record.id), json::serialize(ToJson(record)), 0600);
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

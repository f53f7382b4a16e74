#include "engine/host.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/encoding.h"
#include "base/file.h"
#include "base/id.h"
#include "engine/record.h"
#include "engine/saved.h"

namespace caisson::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMeminfoDir = "meminfo";
constexpr size_t kMaxEnvdBytes = 64 << 20;

// Templates that are being made have a name with a dot.
bool IsPlainName(std::string_view name) { return !name.starts_with('.'); }

Result<UniqueFd> OpenDirectory(const fs::path& path) {
  UniqueFd fd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return FailErrno("opening {}", path.string());
  return fd;
}

// Several launchers may do it at once, and none may replace what another has mounted already: the
// kernel attaches no mount of a file without a name.
Status WriteOnce(const std::string& path, const std::string& text) {
  std::string mine = path + "." + RandomHex(4);
  TRY(WriteFileAtomic(mine, text, 0444));
  bool linked = link(mine.c_str(), path.c_str()) == 0 || errno == EEXIST;
  Status status;
  if (!linked) status = FailErrno("creating {}", path);
  unlink(mine.c_str());
  return status;
}

// What `free` and language runtimes read. The kernel's own would show the whole host.
std::string MeminfoText(int64_t memory_bytes) {
  int64_t kb = memory_bytes / 1024;
  std::string text;
  auto line = [&](const char* name, int64_t value) {
    text += fmt::format("{:<16}{:>8} kB\n", fmt::format("{}:", name), value);
  };
  for (const char* name : {"MemTotal", "MemFree", "MemAvailable"}) line(name, kb);
  for (const char* name :
       {"Buffers",      "Cached",         "SwapCached",   "Active",         "Inactive",
        "Active(anon)", "Inactive(anon)", "Active(file)", "Inactive(file)", "Unevictable",
        "Mlocked",      "SwapTotal",      "SwapFree",     "Dirty",          "Writeback",
        "AnonPages",    "Mapped",         "Shmem",        "KReclaimable",   "Slab",
        "SReclaimable", "SUnreclaim",     "KernelStack",  "PageTables"})
    line(name, 0);
  line("CommitLimit", kb);
  line("Committed_AS", 0);
  return text;
}

}  // namespace

Result<std::unique_ptr<Host>> Host::Open(const Config& config, const NetworkRoot& network,
                                         const Shelf& shelf) {
  std::unique_ptr<Host> host(new Host(config, shelf));
  TRY_ASSIGN(host->slots_, SlotTable::Open(config));
  TRY_ASSIGN(CgroupLayout layout, CgroupLayout::Detect());
  TRY_ASSIGN(host->cgroups_, CgroupParent::Open(layout, ServerTag(config.data_dir)));
  if (network.available) {
    TRY_ASSIGN(HostLink link, HostLink::Open(network));
    TRY_ASSIGN(Firewall firewall, Firewall::Open(network.rules.table));
    host->link_.emplace(std::move(link));
    host->firewall_.emplace(std::move(firewall));
  }
  TRY_ASSIGN(host->seccomp_, SeccompFilter::Compile(config.nesting));
  host->kernel_paths_ = KernelPaths::Find();
  TRY_ASSIGN(host->share_, MachineShare::Find());
  TRY_ASSIGN(host->boot_id_, ReadBootId());
  return host;
}

Status Host::Disconnect(const Slot& slot, const Egress& rules) {
  if (!link_) return {};
  uint32_t address = slot.sandbox_address();
  TRY_ASSIGN(bool connections, firewall_->HasConnections(address));
  if (connections) {
    TRY(link_->TakeDown(slot));
    TRY(firewall_->ForgetConnections(address));
  }
  // A sandbox that died while it was made may have no rules yet.
  Status replaced = firewall_->Replace(address, EgressPolicy(rules), EgressPolicy(Egress{}));
  if (!replaced && replaced.error().sys_errno() == ENOENT) return {};
  return replaced;
}

Result<Host::TemplateRoot> Host::OpenTemplate(const std::string& root_dir, bool saved) {
  struct stat wanted;
  if (stat(root_dir.c_str(), &wanted))
    return Fail(Code::kNotFound, "the template's root {} does not exist{}", root_dir,
                saved ? " any more" : "");
  // A template may be replaced by a newer one under the same name.
  Template& known = templates_[root_dir];
  if (known.root && known.device == wanted.st_dev && known.inode == wanted.st_ino)
    return TemplateRoot{known.root.get(), known.path};
  known = {};
  TRY_ASSIGN(UniqueFd root, saved ? OpenDirectory(root_dir) : FindTemplate(root_dir, wanted));
  std::error_code ec;
  std::string path = fs::canonical(root_dir, ec).string();
  if (ec) return Fail(Code::kInternal, "resolving {}: {}", root_dir, ec.message());
  known = {std::move(root), std::move(path), wanted.st_dev, wanted.st_ino};
  return TemplateRoot{known.root.get(), known.path};
}

Result<UniqueFd> Host::FindTemplate(const std::string& root_dir, const struct stat& wanted) const {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(config_.template_dir, ec)) {
    if (!IsPlainName(entry.path().filename().string())) continue;
    auto root = OpenDirectory(entry.path() / "rootfs");
    struct stat found;
    if (root && fstat(root->get(), &found) == 0 && found.st_dev == wanted.st_dev &&
        found.st_ino == wanted.st_ino)
      return root;
  }
  return Fail(Code::kPermissionDenied, "{} is not the root of a template in {}", root_dir,
              config_.template_dir);
}

Result<std::string> Host::EnvdProgram() const {
  std::error_code ec;
  fs::path path = fs::read_symlink(kEnvdFile, ec);
  if (ec) return Fail(Code::kInternal, "envd is not installed: {}", ec.message());
  return path.string();
}

Result<std::string> Host::MeminfoFile(int64_t memory_bytes) const {
  std::string path = fmt::format("{}/{}", kMeminfoDir, memory_bytes);
  if (access(path.c_str(), F_OK)) TRY(WriteOnce(path, MeminfoText(memory_bytes)));
  return path;
}

std::string RecordsName(const std::string& data_dir) { return "sandboxes-" + ServerTag(data_dir); }

Status EnterEngineDirectory(const Config& config) {
  std::string path = config.data_dir + "/engine";
  std::error_code ec;
  fs::create_directories(config.data_dir, ec);
  if (ec) return Fail(Code::kInternal, "creating {}: {}", config.data_dir, ec.message());
  if (mkdir(path.c_str(), 0700) && errno != EEXIST) return FailErrno("creating {}", path);
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  if (!fd || fstat(fd.get(), &info)) return FailErrno("opening {}", path);
  // SECURITY: whoever else could write here would choose what root does.
  if (info.st_uid != geteuid() || (info.st_mode & 077))
    return Fail(Code::kFailedPrecondition, "{} must belong to root with mode 0700", path);
  if (fchdir(fd.get())) return FailErrno("entering {}", path);
  for (const char* name : {kBlankDir, kShelvesDir, kShelfMount, kMountPoint, kProcPoint, kSysPoint,
                           kMeminfoDir, kEmptyDir, kSavedDir, kLayersDir})
    if (mkdir(name, 0755) && errno != EEXIST) return FailErrno("creating {}/{}", path, name);
  UniqueFd nothing(open(kEmptyFile, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0444));
  if (!nothing) return FailErrno("creating {}/{}", path, kEmptyFile);
  return {};
}

Status InstallEnvd() {
  std::error_code ec;
  fs::path beside = fs::read_symlink("/proc/self/exe", ec).parent_path();
  fs::path source = beside / "caisson-envd";
  if (!fs::exists(source, ec)) source = beside.parent_path() / "bin" / "caisson-envd";
  auto program = ReadFile(source.string(), kMaxEnvdBytes);
  if (!program)
    return Fail(Code::kFailedPrecondition,
                "caisson-envd, which runs inside every sandbox, was not found beside this program");
  std::string dir = "envd-" + HexEncode(Sha256(*program)).substr(0, 16);
  std::string path = dir + "/envd";
  if (mkdir(dir.c_str(), 0755) && errno != EEXIST) return FailErrno("creating {}", dir);
  if (access(path.c_str(), F_OK)) TRY(WriteFileAtomic(path, *program, 0755));
  std::string temporary = "envd." + RandomHex(4) + ".tmp";
  if (symlink(path.c_str(), temporary.c_str()) || rename(temporary.c_str(), kEnvdFile))
    return FailErrno("installing envd");
  return {};
}

}  // namespace caisson::engine

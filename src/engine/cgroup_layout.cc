// Finding the machine's cgroup trees, and making the server's own directory in them.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "engine/cgroup.h"
#include "engine/cgroup_file.h"

namespace caisson::engine {
namespace {

constexpr std::array<std::string_view, kCgroupTrees> kTreeNames = {"unified", "memory", "cpu",
                                                                   "pids"};
constexpr std::string_view kControllers[] = {"cpu", "memory", "pids"};
// Where the processes of the directory above ours go when v2 wants it empty.
constexpr std::string_view kServerLeaf = "caisson-server";

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// The path of this process's cgroup for a v1 controller ("memory") or the v2 tree ("").
std::string OwnPath(std::string_view self, std::string_view controller) {
  for (std::string_view line : Split(self, '\n')) {
    size_t a = line.find(':');
    size_t b = a == std::string_view::npos ? a : line.find(':', a + 1);
    if (b == std::string_view::npos) continue;
    auto names = Split(line.substr(a + 1, b - a - 1), ',');
    if (std::find(names.begin(), names.end(), controller) == names.end()) continue;
    std::string path(line.substr(b + 1));
    // A server started again from within its leaf: ours is beside the leaf, not below.
    size_t slash = path.rfind('/');
    if (slash != std::string::npos && path.substr(slash + 1) == kServerLeaf) path.resize(slash);
    return path == "/" ? "" : path;
  }
  return "";
}

// The root of the tree if we may write there, else our own cgroup in it.
Result<std::string> ChooseBase(const std::string& tree, const std::string& own) {
  if (access(tree.c_str(), W_OK) == 0) return tree;
  std::string path = tree + own;
  if (!own.empty() && access(path.c_str(), W_OK) == 0) return path;
  return Fail(
      Code::kFailedPrecondition,
      "the cgroup tree {} is not writable for this process; run as root, and in a container "
      "give it its own writable cgroup namespace (docker: --privileged or "
      "--cgroupns=private with a writable /sys/fs/cgroup)",
      tree);
}

std::string Missing(std::string_view available) {
  auto words = Split(Trim(available), ' ');
  std::string missing;
  for (std::string_view wanted : kControllers)
    if (std::find(words.begin(), words.end(), wanted) == words.end())
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", wanted);
  return missing;
}

Result<CgroupLayout> DetectV2(const std::string& root, std::string_view self) {
  CgroupLayout layout{.kind = CgroupLayout::Kind::kV2};
  TRY_ASSIGN(layout.bases[kUnifiedTree], ChooseBase(root, OwnPath(self, "")));
  TRY_ASSIGN(std::string available, ReadFile(layout.bases[kUnifiedTree] + "/cgroup.controllers"));
  std::string missing = Missing(available);
  if (!missing.empty())
    return Fail(Code::kFailedPrecondition,
                "the cgroup v2 controllers {} are not available in {}: a systemd unit needs "
                "Delegate=yes; a kernel may need them enabled at boot (cgroup_enable=memory)",
                missing, layout.bases[kUnifiedTree]);
  return layout;
}

Result<CgroupLayout> DetectHybrid(const std::string& root, std::string_view self) {
  CgroupLayout layout{.kind = CgroupLayout::Kind::kHybrid};
  for (size_t tree = 0; tree < kCgroupTrees; ++tree) {
    std::string path = fmt::format("{}/{}", root, kTreeNames[tree]);
    if (!Exists(path + "/cgroup.procs"))
      return Fail(
          Code::kFailedPrecondition,
          "there is no cgroup tree {}: Caisson needs cgroup v2 with memory, cpu and pids, or "
          "v1 trees for these three and a v2 tree at {}/unified",
          path, root);
    TRY_ASSIGN(layout.bases[tree],
               ChooseBase(path, OwnPath(self, tree == kUnifiedTree ? "" : kTreeNames[tree])));
  }
  std::string rules = root + "/blkio/blkio.throttle.write_bps_device";
  if (Exists(rules)) layout.write_rules = rules;
  return layout;
}

// v2 forbids processes in a directory that hands controllers to its children (the root of all is
// exempt, and has no cgroup.type). They may fork while we move them, hence the rounds.
Status MoveProcessesToLeaf(int base, bool plain) {
  if (faccessat(base, "cgroup.type", F_OK, 0) != 0) return {};
  std::string leaf(kServerLeaf);
  for (int round = 0; round < 20; ++round) {
    TRY_ASSIGN(CgroupText processes, CgroupText::Read(base, "cgroup.procs"));
    if (Trim(processes.text()).empty()) return {};
    if (mkdirat(base, leaf.c_str(), 0755) != 0 && errno != EEXIST)
      return FailErrno("cannot make the cgroup {}", leaf);
    for (std::string_view pid : Split(Trim(processes.text()), '\n')) {
      Status moved = WriteCgroupFile(base, CgroupPath(leaf, "cgroup.procs").c_str(), pid, plain);
      if (!moved && moved.error().sys_errno() != ESRCH) return moved;
    }
  }
  return {};
}

Status EnableControllers(int directory, bool plain) {
  TRY_ASSIGN(CgroupText enabled, CgroupText::Read(directory, "cgroup.subtree_control"));
  // Good to have, and not everywhere to be had: without it the speed of disks is not limited.
  if (enabled.text().find("io") == std::string_view::npos)
    (void)WriteCgroupFile(directory, "cgroup.subtree_control", "+io", plain);
  if (Missing(enabled.text()).empty()) return {};
  return WriteCgroupFile(directory, "cgroup.subtree_control", "+cpu +memory +pids", plain);
}

Result<UniqueFd> OpenDirectory(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return FailErrno("cannot open {}", path);
  return fd;
}

}  // namespace

Result<CgroupLayout> CgroupLayout::Detect(const std::string& root, const std::string& self_file) {
  TRY_ASSIGN(std::string self, ReadFile(self_file));
  if (Exists(root + "/cgroup.controllers")) return DetectV2(root, self);
  return DetectHybrid(root, self);
}

Result<std::unique_ptr<CgroupParent>> CgroupParent::Open(const CgroupLayout& layout,
                                                         std::string_view server_tag) {
  std::unique_ptr<CgroupParent> parent(new CgroupParent);
  parent->layout_ = layout;
  parent->name_ = fmt::format("caisson-{}", server_tag);
  const bool v2 = layout.kind == CgroupLayout::Kind::kV2;
  for (size_t tree = 0; tree < kCgroupTrees; ++tree) {
    if (layout.bases[tree].empty()) continue;
    if (v2) {
      TRY_ASSIGN(UniqueFd base, OpenDirectory(layout.bases[tree]));
      TRY(MoveProcessesToLeaf(base.get(), layout.plain_files));
      TRY(EnableControllers(base.get(), layout.plain_files));
    }
    std::string path = fmt::format("{}/{}", layout.bases[tree], parent->name_);
    if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
      return FailErrno("cannot make the cgroup {}", path);
    TRY_ASSIGN(parent->fds_[tree], OpenDirectory(path));
    if (v2) TRY(EnableControllers(parent->fds_[tree].get(), layout.plain_files));
  }
  parent->has_swap_ =
      v2 ? faccessat(parent->fds_[kUnifiedTree].get(), "memory.swap.max", F_OK, 0) == 0
         : faccessat(parent->fds_[kMemoryTree].get(), "memory.memsw.limit_in_bytes", F_OK, 0) == 0;
  return parent;
}

Result<std::vector<std::string>> CgroupParent::List() const {
  UniqueFd fd(openat(fds_[kUnifiedTree].get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return FailErrno("cannot open the server's cgroup");
  DIR* dir = fdopendir(fd.get());
  if (!dir) return FailErrno("cannot read the server's cgroup");
  fd.Release();
  std::vector<std::string> ids;
  while (dirent* entry = readdir(dir))
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') ids.push_back(entry->d_name);
  closedir(dir);
  return ids;
}

Result<int64_t> CgroupParent::CpuTime() const {
  TRY_ASSIGN(auto cpu, CgroupText::Read(fds_[kUnifiedTree].get(), "cpu.stat"));
  return cpu.Find("usage_usec").value_or(0) * 1000;
}

void CgroupParent::RemoveIfEmpty() {
  // rmdir refuses while a sandbox is left: no check of ours could be as exact.
  for (size_t tree = 0; tree < kCgroupTrees; ++tree) {
    if (layout_.bases[tree].empty()) continue;
    rmdir(fmt::format("{}/{}", layout_.bases[tree], name_).c_str());
  }
}

}  // namespace caisson::engine

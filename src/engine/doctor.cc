#include "engine/doctor.h"

#include <linux/capability.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "engine/capabilities.h"
#include "engine/cgroup.h"
#include "engine/criu.h"
#include "engine/doctor_trials.h"
#include "engine/network.h"
#include "engine/nft.h"
#include "engine/reserve.h"
#include "engine/resolver.h"
#include "engine/trial.h"

namespace caisson::engine {
namespace {

using Findings = std::vector<Finding>;
using Level = Finding::Level;

constexpr double kGiB = 1 << 30;
constexpr std::chrono::seconds kTrialTimeout{20};
constexpr const char* kMiddlePages = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";

void Ok(Findings& out, std::string topic, std::string message) {
  out.push_back({Level::kOk, std::move(topic), std::move(message), ""});
}
void Warn(Findings& out, std::string topic, std::string message, std::string fix) {
  out.push_back({Level::kWarning, std::move(topic), std::move(message), std::move(fix)});
}
void Problem(Findings& out, std::string topic, std::string message, std::string fix) {
  out.push_back({Level::kProblem, std::move(topic), std::move(message), std::move(fix)});
}

// A trial whose failure means that no sandbox can be made.
void Require(Findings& out, const char* topic, const Status& tried, std::string_view good,
             std::string_view bad, std::string_view fix) {
  if (tried)
    Ok(out, topic, std::string(good));
  else
    Problem(out, topic, fmt::format("{}: {}", bad, tried.error().message()), std::string(fix));
}

bool HasProgram(std::string_view name) {
  for (const char* directory :
       {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"})
    if (access(fmt::format("{}/{}", directory, name).c_str(), X_OK) == 0) return true;
  return false;
}

// False when nothing else is worth trying.
bool CheckPrivileges(Findings& out) {
  if (geteuid() != 0) {
    Problem(out, "privileges",
            "this is not root, so most of what sandboxes need cannot be made nor checked: "
            "namespaces with their own user ids, mounts, cgroups, network interfaces",
            "run: sudo caisson doctor");
    return false;
  }
  static constexpr std::pair<int, const char*> kNames[] = {{CAP_SYS_ADMIN, "sys_admin"},
                                                           {CAP_NET_ADMIN, "net_admin"},
                                                           {CAP_SETUID, "setuid"},
                                                           {CAP_SETGID, "setgid"},
                                                           {CAP_SETPCAP, "setpcap"},
                                                           {CAP_KILL, "kill"},
                                                           {CAP_SYS_NICE, "sys_nice"},
                                                           {CAP_SYS_PTRACE, "sys_ptrace"},
                                                           {CAP_DAC_OVERRIDE, "dac_override"},
                                                           {CAP_DAC_READ_SEARCH, "dac_read_search"},
                                                           {CAP_SYS_CHROOT, "sys_chroot"},
                                                           {CAP_CHOWN, "chown"},
                                                           {CAP_FOWNER, "fowner"},
                                                           {CAP_FSETID, "fsetid"},
                                                           {CAP_SETFCAP, "setfcap"},
                                                           {CAP_MKNOD, "mknod"}};
  CapabilitySet missing = EngineCapabilities() & ~EffectiveCapabilities();
  std::string names;
  for (auto [capability, name] : kNames)
    if (missing >> capability & 1) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  if (missing != 0) {
    Problem(out, "privileges", fmt::format("root lacks the capabilities {}", names),
            "give them to the container or service Caisson runs in (docker: --privileged)");
  } else {
    Ok(out, "privileges", "root with every capability the engine needs");
  }
  return true;
}

void CheckKernel(Findings& out) {
  utsname name{};
  uname(&name);
  int major = 0, minor = 0;
  sscanf(name.release, "%d.%d", &major, &minor);
  // Idmapped overlay layers; cgroup.kill is older.
  if (major > 5 || (major == 5 && minor >= 19))
    Ok(out, "kernel", fmt::format("Linux {}", name.release));
  else
    Problem(
        out, "kernel",
        fmt::format("Linux {} is too old: the root of a sandbox needs 5.19 or later", name.release),
        "install a newer kernel; Debian 12 has 6.1");
}

void CheckIsolation(Findings& out, const Config& config) {
  Require(out, "namespaces", TryNamespaces(config),
          "user, pid, mount, network, uts, ipc and cgroup namespaces can be made",
          "the namespaces of a sandbox cannot be made",
          "check the sysctl user.max_user_namespaces and security modules that forbid user "
          "namespaces");
  Require(out, "seccomp", TrySeccomp(config), "the system call filter can be installed",
          "the system call filter cannot be installed", "the kernel needs CONFIG_SECCOMP_FILTER");
}

void CheckCgroups(Findings& out) {
  constexpr std::string_view kFix =
      "use a kernel with cgroup v2 and the controllers memory, cpu and pids (the default of every "
      "current distribution), and in a container a writable /sys/fs/cgroup";
  auto layout = CgroupLayout::Detect();
  if (!layout) {
    Problem(out, "cgroups", layout.error().message(), std::string(kFix));
    return;
  }
  bool v2 = layout->kind == CgroupLayout::Kind::kV2;
  Require(
      out, "cgroups", TryCgroup(),
      v2 ? fmt::format("v2, below {}: CPU, memory and process limits hold, freeze and kill work",
                       layout->bases[kUnifiedTree])
         : "hybrid: v1 trees limit CPU, memory and processes; the v2 tree freezes and kills",
      "processes cannot be put into a new cgroup", kFix);
}

void CheckDisk(Findings& out, const Config& config) {
  auto folder = TrialFolder::Make(config.data_dir);
  if (!folder) {
    Problem(out, "data directory", folder.error().message(),
            "set data_dir to a folder root can write to");
    return;
  }
  struct statvfs space{};
  statvfs(folder->path().c_str(), &space);
  double free = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  std::string text =
      fmt::format("{:.1f} GiB free for the disks of sandboxes, each up to {:.1f} GiB", free / kGiB,
                  static_cast<double>(config.sandbox_disk_mb) / 1024);
  if (free < static_cast<double>(config.sandbox_disk_mb) * 1048576)
    Warn(out, "disk space", text + ": one sandbox could fill it",
         "free some space, put data_dir on a larger disk or lower sandbox_disk_mb");
  else
    Ok(out, "disk space", text);

  Status disk = TryDisk(*folder);
  Require(out, "disk limits", disk, "each sandbox gets a file system of its own size (ext4, loop)",
          "a sandbox's disk cannot be made",
          HasProgram("mkfs.ext4") ? "the kernel needs loop devices (/dev/loop-control) and ext4"
                                  : "install e2fsprogs");
  if (disk)
    Require(out, "root file system", TryRoot(config, *folder),
            "overlay over a shared template, with each sandbox's own user ids",
            "the root of a sandbox cannot be mounted",
            "data_dir must be on ext4, xfs or btrfs, and the kernel recent enough (see kernel)");
}

// Tables of others that throw away what they do not know: our accept does not overrule them.
std::string ForeignForwardDrops(const std::string& ruleset) {
  std::string table, found;
  for (std::string_view line : Split(ruleset, '\n')) {
    if (line.starts_with("table ")) table = line.substr(6, line.find(" {") - 6);
    if (line.find("hook forward") != std::string_view::npos &&
        line.find("policy drop") != std::string_view::npos)
      found += fmt::format("{}{}", found.empty() ? "" : ", ", table);
  }
  return found;
}

void CheckForwarding(Findings& out, const Config& config) {
  auto forward = ReadFile("/proc/sys/net/ipv4/ip_forward");
  if (forward && Trim(*forward) == "0")
    Ok(out, "forwarding", "IPv4 forwarding is off; the server switches it on when it starts");
  auto ruleset = ReadNft({"list", "ruleset"});
  std::string drops = ruleset ? ForeignForwardDrops(*ruleset) : "";
  if (drops.empty()) return;
  std::string prefix = InterfacePrefix(ServerTag(config.data_dir));
  Warn(out, "firewall",
       fmt::format("the firewall table {} drops forwarded traffic, that of sandboxes too", drops),
       fmt::format(
           "let through what comes from {0}* and the replies to it, e.g. iptables -I FORWARD "
           "-i {0}+ -j ACCEPT; iptables -I FORWARD -o {0}+ -m conntrack --ctstate "
           "RELATED,ESTABLISHED -j ACCEPT (with Docker: chain DOCKER-USER)",
           prefix));
}

void CheckNetwork(Findings& out, const Config& config) {
  if (config.network == "none") {
    Ok(out, "network", "switched off by the setting network: sandboxes have only their loopback");
    return;
  }
  if (Status probed = NetworkRoot::Probe(config); !probed) {
    Warn(out, "network",
         fmt::format("sandboxes will have only their loopback: {}", probed.error().message()),
         HasProgram("nft") ? "the kernel needs veth and nftables (with nat, fib and reject)"
                           : "install nftables");
    return;
  }
  Ok(out, "network", "veth and nftables work: sandboxes can reach the internet, nothing private");
  auto nameservers = FindNameservers(config.dns, kResolvConf);
  if (!nameservers)
    Warn(out, "dns", nameservers.error().message(), "correct the setting dns");
  else if (nameservers->empty())
    Warn(out, "dns",
         fmt::format("sandboxes will find no names: {} names no nameserver", kResolvConf),
         "set dns to the address of a nameserver");
  else
    Ok(out, "dns",
       fmt::format("sandboxes resolve names through {}",
                   config.dns.empty() ? "this host's nameservers" : config.dns));
  CheckForwarding(out, config);
}

void CheckMemory(Findings& out, const Config& config) {
  int64_t available = MemoryField("MemAvailable"), swap = MemoryField("SwapTotal");
  int64_t each = std::max<int64_t>(config.sandbox_memory_mb, 1) << 20;
  std::string text = fmt::format(
      "{:.1f} GiB available: {} sandboxes if each used all of its {} MiB, far more if they idle",
      static_cast<double>(available) / kGiB, available / each, config.sandbox_memory_mb);
  if (available < each)
    Warn(out, "memory", text, "add memory or lower sandbox_memory_mb");
  else
    Ok(out, "memory", text);
  if (swap == 0) return;
  auto layout = CgroupLayout::Detect();
  // v2 tells only inside a cgroup that has the memory controller; it has been there since 4.5.
  bool accounted =
      !layout || layout->kind == CgroupLayout::Kind::kV2 ||
      access((layout->bases[kMemoryTree] + "/memory.memsw.limit_in_bytes").c_str(), F_OK) == 0;
  if (accounted)
    Ok(out, "swap", "there is swap; sandboxes cannot use it");
  else
    Warn(out, "swap", "this kernel does not account swap: sandboxes can exceed their memory by it",
         "boot with swapaccount=1, or switch swap off");
}

void CheckDescriptors(Findings& out, const Config& config) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  // Engine: process, network and disk of each; server: some connections of each.
  uint64_t wanted = 1000 + 16 * static_cast<uint64_t>(config.max_sandboxes);
  std::string text = limit.rlim_max == RLIM_INFINITY
                         ? std::string("no limit of open files")
                         : fmt::format("up to {} open files per process", limit.rlim_max);
  if (limit.rlim_max < wanted)
    Warn(out, "open files",
         fmt::format("{}; {} sandboxes may need {}", text, config.max_sandboxes, wanted),
         "raise the hard limit (systemd: LimitNOFILE=) or lower max_sandboxes");
  else
    Ok(out, "open files", text);
}

void CheckTemplate(Findings& out, const Config& config) {
  std::string directory =
      config.template_dir.empty() ? config.data_dir + "/templates" : config.template_dir;
  if (access((directory + "/base/template.json").c_str(), F_OK) == 0)
    Ok(out, "base template", "prepared");
  else if (errno == EACCES)
    Warn(out, "base template", fmt::format("{} cannot be read by this user", directory),
         "run: sudo caisson doctor");
  else
    Warn(out, "base template",
         fmt::format("there is no template base in {}, so sandboxes have nothing to start from",
                     directory),
         "./run prepares it (a few minutes, once)");
}

void CheckNames(Findings& out, const Config& config) {
  std::string name = "3000-sandbox." + config.domain;
  Status resolved = TryInChild(
      [&]() -> Status {
        addrinfo* list = nullptr;
        int error = getaddrinfo(name.c_str(), nullptr, nullptr, &list);
        if (error != 0) return Fail(Code::kNotFound, "{}", gai_strerror(error));
        freeaddrinfo(list);
        return {};
      },
      std::chrono::seconds(3));
  if (resolved)
    Ok(out, "preview names", fmt::format("{} resolves on this machine", name));
  else
    Warn(out, "preview names",
         fmt::format("{} does not resolve here ({}). Browsers know *.localhost by themselves; curl "
                     "does too; other programs on this machine do not find previews by name",
                     name, resolved.error().message()),
         "install libnss-myhostname, or point a wildcard DNS name at this machine and set domain");
}

// What becomes of the memory of a paused sandbox.
void CheckPausing(Findings& out, const Config& config) {
  std::string swap = MemoryField("SwapTotal") > 0
                         ? "there is swap for what stays in RAM"
                         : "there is no swap, so what stays in RAM takes its room";
  auto frozen = [&](std::string_view why) {
    return fmt::format(
        "paused sandboxes are frozen in RAM and lost when the machine restarts: {}; {}", why, swap);
  };
  if (!config.save_memory) {
    Ok(out, "pausing", frozen("saving memory is switched off by the setting save_memory"));
    return;
  }
  auto criu = Criu::Find(config);
  if (!criu) {
    Warn(out, "pausing", frozen(criu.error().message()),
         "run tools/prepare-criu, or set criu to a folder that has it");
    return;
  }
  Status tried = TryCriu(*criu, std::chrono::steady_clock::now() + kTrialTimeout);
  if (tried)
    Ok(out, "pausing",
       fmt::format("the memory of paused sandboxes goes to disk: CRIU {} saved and continued a "
                   "process; {}",
                   criu->version(), swap));
  else
    Warn(out, "pausing",
         frozen(fmt::format("CRIU {} does not work here ({})", criu->version(),
                            tried.error().message())),
         "a newer CRIU may know this kernel: remove the old one and run tools/prepare-criu");
}

// Nice to know; nothing depends on it today.
void CheckExtras(Findings& out) {
  if (auto pages = ReadFile(kMiddlePages))
    Ok(out, "memory pages",
       pages->find("[always]") != std::string::npos
           ? "processes get memory in pages of 64 kB: paused sandboxes come back faster"
           : fmt::format("paused sandboxes come back faster if memory comes in pages of 64 kB, for "
                         "all programs of this machine: echo always > {}",
                         kMiddlePages));
  Ok(out, "kvm",
     access("/dev/kvm", F_OK) == 0 ? "/dev/kvm is there; the driver namespace does not use it"
                                   : "no /dev/kvm; the driver namespace does not need it");
}

}  // namespace

std::vector<Finding> Examine(const Config& config) {
  Findings out;
  CheckKernel(out);
  if (CheckPrivileges(out)) {
    CheckIsolation(out, config);
    CheckCgroups(out);
    CheckDisk(out, config);
    CheckNetwork(out, config);
    CheckPausing(out, config);
  }
  CheckMemory(out, config);
  CheckDescriptors(out, config);
  CheckTemplate(out, config);
  CheckNames(out, config);
  CheckExtras(out);
  return out;
}

}  // namespace caisson::engine

#include "engine/criu.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "engine/criu_process.h"
#include "engine/protobuf_wire.h"

namespace caisson::engine {
namespace {

using std::chrono::steady_clock;

constexpr const char* kCache = "/var/cache/caisson";
constexpr const char* kLogFile = "criu.log";
constexpr const char* kKernelFacts = "/run/criu.kdat";
constexpr std::chrono::seconds kAskTimeout{10};

// Fields of criu_opts (images/rpc.proto of CRIU). Numbers of a wire format never change.
enum Option : uint32_t {
  kImagesDirFd = 1,
  kPid = 2,
  kLeaveRunning = 3,
  kFileLocks = 8,
  kLogLevel = 9,
  kLogFileName = 10,
  kNotifyScripts = 12,
  kRoot = 13,
  kLinkRemap = 18,
  kManageCgroupsMode = 34,
  kGhostLimit = 35,
  kScanPaths = 36,
  kExternal = 37,
  kEmptyNamespaces = 38,
  kFreezeCgroup = 44,
  kTcpSkipInFlight = 46,
  kTcpClose = 52,
  kNetworkLock = 64,
};
constexpr uint64_t kIgnoreCgroups = 0;
constexpr uint64_t kSkipNetworkLock = 3;
constexpr uint64_t kErrorsOnly = 1;

std::string Request(CriuVerb verb, std::string_view options) {
  return WireWriter().Number(1, static_cast<uint64_t>(verb)).Bytes(2, options).data();
}

// One more request may follow on the same socket.
std::string Question(CriuVerb verb) {
  WireWriter writer;
  writer.Number(1, static_cast<uint64_t>(verb)).Number(4, 1);
  if (verb == CriuVerb::kFeatureCheck) writer.Bytes(5, WireWriter().Number(2, 1).data());
  return writer.data();
}

std::string Reply(bool success) {
  return WireWriter()
      .Number(1, static_cast<uint64_t>(CriuVerb::kNotify))
      .Number(3, success ? 1 : 0)
      .data();
}

// What dump and restore must agree on.
WireWriter CommonOptions(int images) {
  WireWriter options;
  options.Number(kImagesDirFd, static_cast<uint64_t>(images))
      .Number(kLogLevel, kErrorsOnly)
      .Bytes(kLogFileName, kLogFile)
      .Number(kFileLocks, 1)
      .Number(kLinkRemap, 1)
      .Number(kManageCgroupsMode, kIgnoreCgroups)
      .Number(kEmptyNamespaces, CLONE_NEWNET)
      .Number(kTcpClose, 1)
      .Number(kTcpSkipInFlight, 1)  // cut, like those that a program inside has accepted
      .Number(kNetworkLock, kSkipNetworkLock);
  return options;
}

std::string DumpOptions(const DumpPlan& plan) {
  WireWriter options = CommonOptions(plan.images);
  options.Number(kPid, static_cast<uint64_t>(plan.pid))
      .Number(kLeaveRunning, 1)
      .Number(kGhostLimit,
              static_cast<uint64_t>(std::min<int64_t>(plan.deleted_bytes, UINT32_MAX)));
  if (!plan.freezer.empty()) options.Bytes(kFreezeCgroup, plan.freezer);
  for (const std::string& path : plan.external_mounts)
    options.Bytes(kExternal, fmt::format("mnt[{}]:{}", path, path));
  for (const std::string& path : plan.scan) options.Bytes(kScanPaths, path);
  return options.data();
}

std::string RestoreOptions(const RestorePlan& plan, int images) {
  WireWriter options = CommonOptions(images);
  options.Bytes(kRoot, plan.root).Number(kNotifyScripts, 1);
  for (const auto& [inside, source] : plan.external_mounts)
    options.Bytes(kExternal, fmt::format("mnt[{}]:{}", inside, source));
  return options.data();
}

// What CRIU says about trees it cannot take, and what we say.
constexpr std::pair<std::string_view, std::string_view> kRefusals[] = {
    {"nested pid namespace",
     "a process inside has a pid namespace of its own, as containers and sandboxes inside do"},
    {"nested", "a process inside has namespaces of its own, as containers and sandboxes inside do"},
    {"Unseizable non-zombie", "a process inside is being traced by a debugger"},
    {"is traced", "a process inside is being traced by a debugger"},
    {"doesn't have a proper root mount", "something is mounted inside that cannot be saved"},
    {"unsupported id", "a file system is mounted inside that cannot be saved"},
    {"Can't lookup mount", "a process inside holds a file of a file system that is gone"},
    // It gives such a file a name, and is led to another file system by a link that stands there.
    {"Can't link remap", "a process inside holds a deleted file whose place is elsewhere now"},
    {"Can't stat path", "a process inside holds a deleted file whose place is elsewhere now"},
    {"increase limit", "a process inside holds a deleted file that is too large"},
    {"Unsupported socket", "a process inside has a kind of socket that cannot be saved"},
    {"unsupported proto", "a process inside has a kind of socket that cannot be saved"},
    {"External socket", "a process inside has a socket to the outside"},
    {"netlink", "a process inside has a netlink socket that cannot be saved"},
    {"packet", "a process inside has a packet socket that cannot be saved"},
    {"Can't dump half of stream", "a process inside has a socket to the outside"},
    {"No handler", "a process inside has a kind of file open that cannot be saved"},
    {"Can't dump file", "a process inside has a kind of file open that cannot be saved"},
    {"io_uring", "a process inside uses io_uring"},
    {"bpf", "a process inside uses BPF"},
    {"fsnotify", "a process inside watches a file that cannot be found again"},
    {"Can't dump that handle", "a process inside watches a file that cannot be found again"},
    {"SysV", "System V shared memory inside cannot be saved"},
};

// The errors of CRIU's log, first ones first, without time and place.
std::vector<std::string> ErrorsIn(int images) {
  std::vector<std::string> errors;
  auto log = ReadFile(fmt::format("/proc/self/fd/{}/{}", images, kLogFile), 1 << 20);
  if (!log) return errors;
  for (std::string_view line : Split(*log, '\n')) {
    size_t at = line.find("Error (");
    if (at == std::string_view::npos || line.find("RLIMIT_NOFILE") != std::string_view::npos)
      continue;
    size_t text = line.find("): ", at);
    errors.emplace_back(text == std::string_view::npos ? line.substr(at) : line.substr(text + 3));
  }
  return errors;
}

Error Explain(std::string_view doing, const CriuAnswer& answer, int images) {
  std::vector<std::string> errors = ErrorsIn(images);
  for (const std::string& error : errors)
    for (auto [said, meaning] : kRefusals)
      if (error.find(said) != std::string::npos)
        return Error(Code::kUnimplemented, fmt::format("{}: {} (CRIU: {})", doing, meaning, error));
  std::string first = errors.empty() ? std::string(Trim(answer.error)) : errors.front();
  if (first.empty()) first = "no reason given";
  return Error(Code::kInternal, fmt::format("{}: CRIU failed: {}", doing, first));
}

bool IsProgram(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

// A bundle brings its own loader and libraries.
std::vector<std::string> CommandIn(const std::string& directory) {
  std::string program = directory + "/criu", loader = directory + "/ld.so";
  if (!IsProgram(program)) return {};
  if (IsProgram(loader)) return {loader, "--library-path", directory + "/lib", program};
  return {program};
}

// The newest bundle of this machine; "" if there is none.
std::string NewestBundle() {
  const char* cache = getenv("CAISSON_CACHE_DIR");
  std::string best;
  auto version = [](const std::string& path) {
    std::vector<int> numbers;
    for (std::string_view part : Split(std::string_view(path).substr(path.rfind('-') + 1), '.'))
      numbers.push_back(ParseInt<int>(part).value_or(0));
    return numbers;
  };
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(cache ? cache : kCache, error)) {
    std::string path = entry.path().string();
    if (!entry.path().filename().string().starts_with("criu-") || CommandIn(path).empty()) continue;
    if (best.empty() || version(best) < version(path)) best = path;
  }
  return best;
}

Result<std::vector<std::string>> FindCommand(const Config& config) {
  if (!config.criu.empty()) {
    auto command = CommandIn(config.criu);
    if (command.empty())
      return Fail(Code::kNotFound, "the setting criu names {}, which has no program criu",
                  config.criu);
    return command;
  }
  if (std::string bundle = NewestBundle(); !bundle.empty()) return CommandIn(bundle);
  for (const char* directory : {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"})
    if (auto command = CommandIn(directory); !command.empty()) return command;
  return Fail(Code::kNotFound, "CRIU is not installed; tools/prepare-criu fetches it");
}

// While it is set, orphans below this process become its children, not those of init.
class Subreaper {
 public:
  Subreaper() {
    prctl(PR_GET_CHILD_SUBREAPER, &before_);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Subreaper() { prctl(PR_SET_CHILD_SUBREAPER, before_); }
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

 private:
  int before_ = 0;
};

}  // namespace

Result<Criu> Criu::Find(const Config& config) {
  Criu criu;
  TRY_ASSIGN(criu.command_, FindCommand(config));
  struct statfs run;
  criu.cover_run_ = statfs("/run", &run) != 0 || run.f_type != TMPFS_MAGIC;
  Status asked = criu.Ask(steady_clock::now() + kAskTimeout);
  if (!asked)
    return Fail(Code::kNotFound, "CRIU ({}) does not start on this machine: {}",
                criu.command_.back(), asked.error().message());
  return criu;
}

// Its version, and what it finds out about the kernel when it is asked anything at all.
Status Criu::Ask(Deadline deadline) {
  TRY_ASSIGN(CriuProcess process, CriuProcess::Start({&command_, cover_run_, "", -1, nullptr}));
  for (CriuVerb verb : {CriuVerb::kVersion, CriuVerb::kFeatureCheck}) {
    TRY(process.Send(Question(verb)));
    TRY_ASSIGN(CriuAnswer answer, process.Receive(deadline));
    if (!answer.success)
      return Fail(Code::kUnavailable, "{}",
                  answer.error.empty() ? "it does not know this kernel" : answer.error);
    if (verb == CriuVerb::kVersion) version_ = answer.version;
  }
  if (cover_run_) {
    // It waits for another question, so its file system can be looked at.
    auto facts = ReadFile(fmt::format("/proc/{}/root{}", process.pid(), kKernelFacts));
    if (facts) kernel_facts_ = std::move(*facts);
  }
  process.Finish(deadline);
  return {};
}

Status Criu::Dump(const DumpPlan& plan, Deadline deadline) const {
  TRY_ASSIGN(CriuProcess process,
             CriuProcess::Start({&command_, cover_run_, kernel_facts_, -1, nullptr, plan.lock}));
  TRY(process.Send(Request(CriuVerb::kDump, DumpOptions(plan))));
  TRY_ASSIGN(CriuAnswer answer, process.Receive(deadline));
  process.Finish(deadline);
  if (!answer.success) return tl::unexpected(Explain("saving the memory", answer, plan.images));
  return {};
}

Result<int> Criu::Restore(const RestorePlan& plan, Deadline deadline) const {
  Subreaper subreaper;
  TRY_ASSIGN(CriuProcess process,
             CriuProcess::Start({&command_, cover_run_ && !plan.root.starts_with("/run/"),
                                 kernel_facts_, plan.cgroup, &plan.enter}));
  TRY_ASSIGN(int images, plan.open_images());
  TRY(process.Send(Request(CriuVerb::kRestore, RestoreOptions(plan, images))));
  Status ours;
  for (;;) {
    TRY_ASSIGN(CriuAnswer answer, process.Receive(deadline));
    if (answer.verb == CriuVerb::kNotify) {
      if (answer.script == "setup-namespaces" && plan.set_up_network)
        ours = plan.set_up_network(answer.pid);
      if (ours && answer.script == "post-restore" && plan.finish_memory)
        ours = plan.finish_memory();
      TRY(process.Send(Reply(ours.has_value())));
      continue;
    }
    process.Finish(deadline);
    TRY(ours);
    if (!answer.success || answer.pid <= 0)
      return tl::unexpected(Explain("continuing the processes", answer, images));
    return answer.pid;
  }
}

}  // namespace caisson::engine

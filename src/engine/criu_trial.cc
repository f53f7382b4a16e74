#include <elf.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "engine/criu.h"
#include "engine/mount.h"
#include "engine/trial.h"

namespace caisson::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint64_t kNamespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC;
// A range that belongs to no user, and to no sandbox with the default settings.
constexpr uid_t kFirstId = 0x0fff0000;
constexpr uid_t kIds = 65536;
constexpr const char* kProgram = "wait";

// What is saved is alone in its root, so it must be a program without libraries: this one waits,
// and that is all it does.
#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
constexpr uint8_t kCode[] = {0xb8, 0x22, 0x00, 0x00, 0x00,  // mov eax, SYS_pause
                             0x0f, 0x05,                    // syscall
                             0xeb, 0xf7};                   // jmp to the start
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
constexpr uint32_t kCode[] = {0xd2800000, 0xd2800001, 0xd2800002, 0xd2800003,  // no descriptors
                              0xd2800928, 0xd4000001,                          // ppoll
                              0x17fffffa};                                     // b to the start
#endif

std::string WaitingProgram() {
  constexpr uint64_t kAddress = 0x400000;
  constexpr uint64_t kHeaders = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = kMachine;
  header.e_version = EV_CURRENT;
  header.e_entry = kAddress + kHeaders;
  header.e_phoff = sizeof(header);
  header.e_ehsize = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_flags = PF_R | PF_X;
  segment.p_vaddr = segment.p_paddr = kAddress;
  segment.p_filesz = segment.p_memsz = kHeaders + sizeof(kCode);
  segment.p_align = 4096;
  std::string file;
  file.append(reinterpret_cast<const char*>(&header), sizeof(header));
  file.append(reinterpret_cast<const char*>(&segment), sizeof(segment));
  file.append(reinterpret_cast<const char*>(kCode), sizeof(kCode));
  return file;
}

// A process like a sandbox's first one, with a listening socket; killed with the object.
class Subject {
 public:
  static Result<Subject> Start(const std::string& root);
  explicit Subject(pid_t pid) : pid_(pid) {}
  Subject(Subject&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  Subject& operator=(Subject&&) = delete;
  ~Subject() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// In the new process, which `channel` tells when its user ids are there. Returns only to fail.
Status Become(const std::string& root, int channel) {
  char byte;
  if (read(channel, &byte, 1) != 1) return FailErrno("waiting for user ids");
  // A mount of an owner outside cannot become a root; a copy of it can.
  if (mount(root.c_str(), root.c_str(), nullptr, MS_BIND, nullptr)) return FailErrno("binding");
  if (chdir(root.c_str()) ||
      mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr))
    return FailErrno("mounting proc");
  if (syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH))
    return FailErrno("changing the root");
  if (chdir("/")) return FailErrno("entering /");
  if (setresgid(0, 0, 0) || setresuid(0, 0, 0)) return FailErrno("taking user ids");
  setsid();
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0 || listen(listener, 1)) return FailErrno("listening");
  // Only that one is kept; `channel` closes when the program starts.
  if (dup2(listener, 0) < 0) return FailErrno("placing a socket");
  close_range(1, ~0u, CLOSE_RANGE_CLOEXEC);
  char* arguments[] = {const_cast<char*>(kProgram), nullptr};
  execve("/wait", arguments, arguments + 1);
  return FailErrno("starting a program");
}

Result<Subject> Subject::Start(const std::string& root) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return FailErrno("making a socket");
  UniqueFd ours(pair[0]), theirs(pair[1]);
  clone_args args{};
  args.flags = kNamespaces;
  args.exit_signal = SIGCHLD;
  auto pid = static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
  if (pid < 0) return FailErrno("making namespaces");
  if (pid == 0) {
    std::string text = Become(root, theirs.get()).error().message();
    (void)!send(theirs.get(), text.data(), text.size(), MSG_NOSIGNAL);
    _exit(1);
  }
  Subject subject(pid);
  theirs.Reset();
  for (const char* map : {"uid_map", "gid_map"})
    TRY(WriteKernelFile(fmt::format("/proc/{}/{}", pid, map),
                        fmt::format("0 {} {}", kFirstId, kIds)));
  (void)!send(ours.get(), "G", 1, MSG_NOSIGNAL);
  char text[512];
  ssize_t n = read(ours.get(), text, sizeof text);
  if (n != 0)
    return Fail(Code::kInternal, "a process could not be made: {}",
                std::string_view(text, static_cast<size_t>(std::max<ssize_t>(n, 0))));
  return subject;
}

Status SaveAndContinue(const Criu& criu, const std::string& folder, Deadline deadline) {
  TRY(TakeMountNamespace());
  std::string root = folder + "/root", images = folder + "/images";
  for (const std::string& path : {root, images})
    if (mkdir(path.c_str(), 0755)) return FailErrno("making a folder");
  if (mount("tmpfs", root.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m"))
    return FailErrno("mounting a tmpfs");
  TRY(WriteFileAtomic(fmt::format("{}/{}", root, kProgram), WaitingProgram(), 0755));
  // CRIU makes a folder there for a moment.
  if (chown(root.c_str(), kFirstId, kFirstId)) return FailErrno("giving away a folder");
  if (mkdir((root + "/proc").c_str(), 0755)) return FailErrno("making a folder");
  UniqueFd directory(open(images.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return FailErrno("opening a folder");
  {
    TRY_ASSIGN(Subject subject, Subject::Start(root));
    DumpPlan plan;
    plan.pid = subject.pid();
    plan.images = directory.get();
    TRY(criu.Dump(plan, deadline));
  }
  RestorePlan plan;
  plan.images = directory.get();
  plan.root = root;
  TRY_ASSIGN(int pid, criu.Restore(plan, deadline));
  Subject continued(pid);
  if (waitpid(pid, nullptr, WNOHANG) != 0)
    return Fail(Code::kInternal, "the continued process ended at once");
  return {};
}

}  // namespace

Status TryCriu(const Criu& criu, Deadline deadline) {
  std::string folder = (std::filesystem::temp_directory_path() / "caisson-criu-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return FailErrno("making a folder for a trial of CRIU");
  auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
  Status tried = TryInChild([&] { return SaveAndContinue(criu, folder, deadline); },
                            std::max(left, milliseconds(1)));
  TRY(RemoveTree(folder));
  return tried;
}

}  // namespace caisson::engine

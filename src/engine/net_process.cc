#include "engine/net_process.h"

#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#endif

#include <algorithm>
#include <filesystem>

namespace caisson::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "caisson-net";

#if __has_feature(address_sanitizer)
constexpr bool kSanitized = true;  // it opens files and maps terabytes

// Where it would open a file for them, this user may not look.
Status TellReportsToStderr() {
  __sanitizer_set_report_fd(reinterpret_cast<void*>(STDERR_FILENO));
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)) return FailErrno("allowing the search for leaks");
  return {};
}
#else
constexpr bool kSanitized = false;
Status TellReportsToStderr() { return {}; }
#endif

// What waiting, talking and memory take.
constexpr const char* kCalls[] = {"accept4",       "brk",
                                  "clock_gettime", "clock_nanosleep",
                                  "close",         "connect",
                                  "epoll_create1", "epoll_ctl",
                                  "epoll_pwait",   "epoll_wait",
                                  "exit",          "exit_group",
                                  "fcntl",         "fstat",
                                  "futex",         "getpeername",
                                  "getpid",        "getrandom",
                                  "getsockname",   "getsockopt",
                                  "gettid",        "gettimeofday",
                                  "madvise",       "mremap",
                                  "munmap",        "newfstatat",
                                  "poll",          "ppoll",
                                  "read",          "recvfrom",
                                  "recvmsg",       "restart_syscall",
                                  "rt_sigaction",  "rt_sigprocmask",
                                  "rt_sigreturn",  "sendmsg",
                                  "sendto",        "setsockopt",
                                  "shutdown",      "sigaltstack",
                                  "tgkill",        "write",
                                  "writev"};

struct Limit {
  decltype(RLIMIT_CORE) resource;
  rlim_t value;
};

Status Check(int result) {
  if (result == 0) return {};
  return tl::unexpected(ErrnoError("building the system call filter", -result));
}

int Exec(int program, std::string title, int socket) {
  LeaveOomProtection();
  char* arguments[] = {title.data(), nullptr};
  char* none[] = {nullptr};
  // The program's own descriptor must not be where the socket goes.
  int from = fcntl(program, F_DUPFD_CLOEXEC, kNetSocket + 1);
  if (from < 0 || (socket != kNetSocket && dup2(socket, kNetSocket) < 0) ||
      (socket == kNetSocket && fcntl(socket, F_SETFD, 0) != 0))
    return 1;
  if (socket != kNetSocket) close(socket);
  // By the environment a sanitizer is told what to do.
  syscall(SYS_execveat, from, "", arguments, kSanitized ? environ : none, AT_EMPTY_PATH);
  return 1;
}

Status BecomeUser(uid_t uid) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || setgroups(0, nullptr) || setresgid(uid, uid, uid) ||
      setresuid(uid, uid, uid))
    return FailErrno("becoming user {}", uid);
  return {};
}

Status AllowNothingElse() {
  std::unique_ptr<void, void (*)(scmp_filter_ctx)> filter(seccomp_init(SCMP_ACT_ERRNO(EPERM)),
                                                          seccomp_release);
  if (!filter) return Fail(Code::kInternal, "libseccomp cannot make a filter");
  for (const char* name : kCalls) {
    int number = seccomp_syscall_resolve_name(name);
    if (number >= 0) TRY(Check(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, number, 0)));
  }
  auto allow_if = [&](const char* name, scmp_arg_cmp argument) {
    return Check(seccomp_rule_add_array(filter.get(), SCMP_ACT_ALLOW,
                                        seccomp_syscall_resolve_name(name), 1, &argument));
  };
  for (uint64_t family : {AF_INET, AF_INET6})
    TRY(allow_if("socket", SCMP_A0_64(SCMP_CMP_EQ, family, 0)));
  for (const char* name : {"mmap", "mprotect"})
    TRY(allow_if(name, SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)));
  return Check(seccomp_load(filter.get()));
}

}  // namespace

Result<UniqueFd> OpenNetProgram() {
  std::error_code ec;
  fs::path beside = fs::read_symlink("/proc/self/exe", ec).parent_path();
  for (const fs::path& folder :
       {beside, beside.parent_path() / "bin", beside.parent_path().parent_path() / "bin"}) {
    UniqueFd fd(open((folder / kProgram).c_str(), O_PATH | O_CLOEXEC));
    if (fd) return fd;
  }
  return Fail(Code::kFailedPrecondition,
              "{}, which answers the DNS queries of sandboxes, was not found beside this program",
              kProgram);
}

Result<NetProcess> StartNetProgram(int program, const char* role, uid_t uid, Message settings) {
  TRY_ASSIGN(SocketPair pair, MakeSocketPair());
  int theirs = pair.second.get();
  NetProcess started;
  settings.head["role"] = role;
  settings.head["uid"] = uid;
  std::string title = std::string("caisson: ") + role;
  TRY_ASSIGN(started.forked,
             ForkProcess({program, theirs}, [&] { return Exec(program, title, theirs); }));
  // Room for what thousands of sandboxes may need to be told at its start; who does not read for so
  // long is as good as dead.
  timeval patience{.tv_sec = 2, .tv_usec = 0};
  setsockopt(pair.first.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  TRY(Send(pair.first.get(), settings));
  started.socket = std::move(pair.first);
  return started;
}

Status ConfineNetProgram(const Message& settings) {
  TRY_ASSIGN(std::string role, GetString(settings.head, "role"));
  TRY_ASSIGN(int64_t uid, GetInt(settings.head, "uid"));
  TRY(BecomeUser(static_cast<uid_t>(uid)));
  if (kSanitized) return TellReportsToStderr();
  // Buffers of connections are most of what either needs.
  rlim_t memory = role == kRelayRole ? rlim_t{8} << 30 : rlim_t{2} << 30;
  for (auto [resource, value] : {Limit{RLIMIT_CORE, 0}, Limit{RLIMIT_NPROC, 0},
                                 Limit{RLIMIT_MEMLOCK, 0}, Limit{RLIMIT_DATA, memory}}) {
    rlimit limit{value, value};
    if (setrlimit(resource, &limit)) return FailErrno("limiting what this process may use");
  }
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)) return FailErrno("forbidding to be traced");
  return AllowNothingElse();
}

}  // namespace caisson::engine

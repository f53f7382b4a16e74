#include "engine/seccomp.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>

#include "base/fd.h"
#include "engine/seccomp_list.h"
#include "engine/socket_filter.h"

namespace caisson::engine {
namespace {

using Context = std::unique_ptr<void, void (*)(scmp_filter_ctx)>;

Status Check(int result, const char* what) {
  if (result == 0) return {};
  return tl::unexpected(
      ErrnoError(fmt::format("building the system call filter, {}", what), -result));
}

Result<Context> NewFilter(uint32_t default_action) {
  Context context(seccomp_init(default_action), seccomp_release);
  if (!context) return Fail(Code::kInternal, "libseccomp cannot make a filter");
  // SECURITY: calls by another ABI (i386, x32) would have other numbers: they all fail.
  TRY(Check(seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)),
            "foreign architectures"));
  // A binary tree instead of a chain of comparisons.
  TRY(Check(seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimising"));
  return context;
}

Status Add(const Context& context, uint32_t action, const char* name) {
  int number = seccomp_syscall_resolve_name(name);
  if (number < 0) return {};  // not on this architecture, or newer than the library
  int result = seccomp_rule_add(context.get(), action, number, 0);
  return Check(result == -EEXIST ? 0 : result, name);
}

Status AddIf(const Context& context, uint32_t action, const char* name, scmp_arg_cmp argument) {
  return Check(seccomp_rule_add_array(context.get(), action, seccomp_syscall_resolve_name(name), 1,
                                      &argument),
               name);
}

Result<std::vector<sock_filter>> Export(const Context& context) {
  UniqueFd fd(memfd_create("seccomp", MFD_CLOEXEC));
  if (!fd) return FailErrno("making a memory file");
  TRY(Check(seccomp_export_bpf(context.get(), fd.get()), "compiling"));
  off_t size = lseek(fd.get(), 0, SEEK_END);
  std::vector<sock_filter> program(static_cast<size_t>(size) / sizeof(sock_filter));
  if (pread(fd.get(), program.data(), static_cast<size_t>(size), 0) != size)
    return FailErrno("reading the compiled filter");
  return program;
}

Result<std::vector<sock_filter>> CompileNames(bool nesting) {
  TRY_ASSIGN(Context context, NewFilter(SCMP_ACT_ERRNO(ENOSYS)));
  for (auto group : seccomp_list::kAllowed)
    for (const char* name : group) TRY(Add(context, SCMP_ACT_ALLOW, name));
  for (int number : seccomp_list::kByNumber) {
    int result = seccomp_rule_add(context.get(), SCMP_ACT_ALLOW, number, 0);
    TRY(Check(result == -EEXIST ? 0 : result, "calls by number"));
  }
  for (const char* name : seccomp_list::kForbidden) TRY(Add(context, SCMP_ACT_ERRNO(EPERM), name));
  // SECURITY: it waits for all disks of the host, those of slow and greedy neighbours, too. No
  // sandbox waits for its disk (root.cc), so there is nothing to wait for.
  TRY(Add(context, SCMP_ACT_ERRNO(0), "sync"));
  for (const char* name : seccomp_list::kNesting)
    TRY(Add(context, nesting ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EPERM), name));
  // Debuggers switch address randomisation off; the rest of personality(2) weakens a process.
  for (unsigned value : {0u, static_cast<unsigned>(PER_LINUX32), static_cast<unsigned>(UNAME26),
                         static_cast<unsigned>(ADDR_NO_RANDOMIZE), 0xffffffffu})
    TRY(AddIf(context, SCMP_ACT_ALLOW, "personality", SCMP_A0_64(SCMP_CMP_EQ, value, 0)));
  return Export(context);
}

Result<std::vector<sock_filter>> CompileArguments(bool nesting) {
  TRY_ASSIGN(Context context, NewFilter(SCMP_ACT_ALLOW));
  // SECURITY: TIOCSTI types into the terminal of whoever attached to it, TIOCLINUX into a console.
  // TIOCSETD reaches line disciplines: drivers for modems that nobody looked at for long, some of
  // which were the way to root. The kernel looks at the low 32 bits only, so must we.
  for (unsigned request : {TIOCSTI, TIOCLINUX, TIOCSETD})
    TRY(AddIf(context, SCMP_ACT_ERRNO(EPERM), "ioctl",
              SCMP_A1_64(SCMP_CMP_MASKED_EQ, 0xffffffffu, request)));
  // SECURITY: this call makes pairs of TIPC, and asks the kernel for modules as socket() does.
  TRY(AddIf(context, SCMP_ACT_ERRNO(EOPNOTSUPP), "socketpair",
            SCMP_A0_64(SCMP_CMP_NE, AF_UNIX, 0)));
  // SECURITY: TLS, espintcp and the like in the kernel: loaded by name, rarely used, often mended.
  const scmp_arg_cmp upper_layer[] = {SCMP_A1_64(SCMP_CMP_MASKED_EQ, 0xffffffffu, IPPROTO_TCP),
                                      SCMP_A2_64(SCMP_CMP_MASKED_EQ, 0xffffffffu, TCP_ULP)};
  TRY(Check(seccomp_rule_add_array(context.get(), SCMP_ACT_ERRNO(ENOPROTOOPT), SCMP_SYS(setsockopt),
                                   2, upper_layer),
            "setsockopt"));
  // SECURITY: huge pages that somebody set aside on the host are counted by no memory limit.
  // Programs know machines where none are left.
  TRY(AddIf(context, SCMP_ACT_ERRNO(ENOMEM), "mmap",
            SCMP_A3_64(SCMP_CMP_MASKED_EQ, MAP_HUGETLB, MAP_HUGETLB)));
  // With this error Chromium finds out which flags there are: it tries all of them.
  TRY(AddIf(context, SCMP_ACT_ERRNO(EINVAL), "memfd_create",
            SCMP_A1_64(SCMP_CMP_MASKED_EQ, MFD_HUGETLB, MFD_HUGETLB)));
  TRY(AddIf(context, SCMP_ACT_ERRNO(ENOMEM), "shmget",
            SCMP_A2_64(SCMP_CMP_MASKED_EQ, SHM_HUGETLB, SHM_HUGETLB)));
  if (!nesting) {
    constexpr int kTimeNamespace = 0x80;
    // SECURITY: a user namespace gives all capabilities inside it, and with them most of the
    // kernel code that has been the way out of containers.
    for (int flag : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER,
                     CLONE_NEWPID, CLONE_NEWNET}) {
      auto bit = static_cast<uint64_t>(flag);
      TRY(AddIf(context, SCMP_ACT_ERRNO(EPERM), "clone", SCMP_A0_64(SCMP_CMP_MASKED_EQ, bit, bit)));
      TRY(AddIf(context, SCMP_ACT_ERRNO(EPERM), "unshare",
                SCMP_A0_64(SCMP_CMP_MASKED_EQ, bit, bit)));
    }
    // In clone this bit belongs to the exit signal.
    TRY(AddIf(context, SCMP_ACT_ERRNO(EPERM), "unshare",
              SCMP_A0_64(SCMP_CMP_MASKED_EQ, kTimeNamespace, kTimeNamespace)));
  }
  return Export(context);
}

Status InstallProgram(const std::vector<sock_filter>& program) {
  sock_fprog code{static_cast<unsigned short>(program.size()),
                  const_cast<sock_filter*>(program.data())};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &code))
    return FailErrno("installing the system call filter");
  return {};
}

}  // namespace

Result<SeccompFilter> SeccompFilter::Compile(bool nesting) {
  SeccompFilter filter;
  TRY_ASSIGN(filter.names_, CompileNames(nesting));
  TRY_ASSIGN(filter.arguments_, CompileArguments(nesting));
  filter.sockets_ = SocketFilter(nesting);
  return filter;
}

Status SeccompFilter::Install() const {
  for (const Program* program : {&names_, &arguments_, &sockets_}) TRY(InstallProgram(*program));
  return {};
}

}  // namespace caisson::engine

// The system calls of seccomp.h, in groups, each with its reason.
#pragma once

#include <array>
#include <span>

namespace caisson::engine::seccomp_list {

// clang-format off

// Files and directories. mknod makes pipes and sockets; device nodes the kernel refuses to a user
// namespace. name_to_handle_at only names a file; opening by handle is forbidden below.
inline constexpr const char* kFiles[] = {
    "access", "cachestat", "chdir", "chmod", "chown", "chroot", "close", "close_range",
    "copy_file_range", "creat", "dup", "dup2", "dup3", "faccessat", "faccessat2", "fadvise64",
    "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "fcntl",
    "fdatasync", "fgetxattr", "flistxattr", "flock", "fremovexattr", "fsetxattr", "fstat",
    "fstatfs", "fsync", "ftruncate", "futimesat", "getcwd", "getdents", "getdents64",
    "getxattr", "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch",
    "ioctl", "lchown", "lgetxattr", "link", "linkat", "listxattr", "llistxattr", "lremovexattr",
    "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat", "mknod", "mknodat", "name_to_handle_at",
    "newfstatat", "open", "openat", "openat2", "pread64", "preadv", "preadv2", "pwrite64",
    "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv",
    "removexattr", "rename", "renameat", "renameat2", "rmdir", "sendfile", "setxattr", "splice",
    "stat", "statfs", "statx", "symlink", "symlinkat", "sync_file_range", "syncfs", "tee",
    "truncate", "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes",
    "vmsplice", "write", "writev",
};

// Memory of the process itself. NUMA policy is missing, as on kernels without NUMA: what asks for it
// goes on without, and its code has been a way to root.
inline constexpr const char* kMemory[] = {
    "brk", "madvise", "membarrier", "memfd_create", "mincore", "mlock", "mlock2", "mlockall",
    "mmap", "mprotect", "mremap", "msync", "munlock", "munlockall", "munmap", "pkey_alloc",
    "pkey_free", "pkey_mprotect", "process_madvise", "process_mrelease",
};

// Processes, threads, scheduling. clone3 is left out: its flags lie in memory where no filter sees
// them; on ENOSYS libc uses clone, whose flags are checked, as are those of unshare. ptrace and the
// process_vm calls are for gdb and strace; they cannot get around this filter.
inline constexpr const char* kProcesses[] = {
    "arch_prctl", "capget", "capset", "clone", "execve", "execveat", "exit", "exit_group",
    "fork", "get_robust_list", "get_thread_area", "getcpu", "getpgid", "getpgrp", "getpid",
    "getppid", "getpriority", "getrlimit", "getrusage", "getsid", "gettid", "ioprio_get",
    "ioprio_set", "kill", "pidfd_getfd", "pidfd_open", "pidfd_send_signal", "prctl",
    "prlimit64", "process_vm_readv", "process_vm_writev", "ptrace", "restart_syscall", "rseq",
    "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr",
    "sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity",
    "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield", "seccomp",
    "set_robust_list", "set_thread_area", "set_tid_address", "setpgid", "setpriority",
    "setrlimit", "setsid", "sysinfo", "times", "tgkill", "tkill", "uname", "unshare", "vfork",
    "wait4", "waitid",
};

// Who a process is. All ids are of the sandbox's own range.
inline constexpr const char* kIdentity[] = {
    "getegid", "geteuid", "getgid", "getgroups", "getresgid", "getresuid", "getuid", "setfsgid",
    "setfsuid", "setgid", "setgroups", "setregid", "setresgid", "setresuid", "setreuid",
    "setuid",
};

// Sockets; which kinds is checked (socket_filter.h).
inline constexpr const char* kSockets[] = {
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt",
    "listen", "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt",
    "shutdown", "socket", "socketpair",
};

// Waiting, signals, time. Setting the clock is forbidden below.
inline constexpr const char* kWaiting[] = {
    "alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "epoll_create",
    "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait", "epoll_pwait2", "epoll_wait",
    "epoll_wait_old", "eventfd", "eventfd2", "futex", "futex_waitv", "getitimer",
    "gettimeofday", "nanosleep", "pause", "pipe", "pipe2", "poll", "ppoll", "pselect6",
    "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "select", "setitimer",
    "sigaltstack", "signalfd", "signalfd4", "time", "timer_create", "timer_delete",
    "timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime",
    "timerfd_settime",
};

// Communication between processes of the same sandbox (it has an IPC namespace of its own),
// randomness, and the kernel's own sandboxing for programs that use it. Kernel AIO is missing:
// databases go on with threads, and the sandbox can be saved.
inline constexpr const char* kOther[] = {
    "getrandom", "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self",
    "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
    "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat",
    "shmctl", "shmdt", "shmget",
};

// Newer than the library's table, so by number (one for all architectures): cachestat, fchmodat2,
// map_shadow_stack, futex_wake/wait/requeue, mseal, and the *xattrat family.
inline constexpr int kByNumber[] = {451, 452, 453, 454, 455, 456, 462, 463, 464, 465, 466};

// Known, and refused so that the caller learns it is forbidden and not missing: what changes the
// host (time, modules, swap, reboot, quota), what looks at the kernel (bpf, perf, syslog), and what
// has been a way out of containers (opening by handle, userfaultfd for winning races, port access).
inline constexpr const char* kForbidden[] = {
    "acct", "adjtimex", "bpf", "clock_adjtime", "clock_settime", "create_module",
    "delete_module", "fanotify_init", "fanotify_mark", "finit_module", "get_kernel_syms",
    "init_module", "ioperm", "iopl", "kexec_file_load", "kexec_load", "lookup_dcookie",
    "migrate_pages", "move_pages", "nfsservctl", "open_by_handle_at", "perf_event_open",
    "query_module", "quotactl", "quotactl_fd", "reboot", "setdomainname", "sethostname",
    "settimeofday", "stime", "swapoff", "swapon", "syslog", "userfaultfd", "vhangup",
};

// Mounts and namespaces: refused, unless the operator allows nesting.
inline constexpr const char* kNesting[] = {
    "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount",
    "open_tree", "pivot_root", "setns", "umount", "umount2",
};

// clang-format on

inline constexpr std::array<std::span<const char* const>, 7> kAllowed = {
    kFiles, kMemory, kProcesses, kIdentity, kSockets, kWaiting, kOther};

}  // namespace caisson::engine::seccomp_list

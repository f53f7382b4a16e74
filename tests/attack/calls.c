// Attempts by raw system calls, for tests/attack. Runs inside a sandbox.
//
//   calls GROUP [ARGUMENTS]
//
// prints one line per attempt, "name OK" or "name ERRNO", and "end OK" when it got through all.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <dirent.h>
#include <unistd.h>

static long Report(const char* name, long result) {
  int error = errno;
  const char* text = result >= 0 ? "OK" : strerrorname_np(error);
  printf("%s %s\n", name, text ? text : "EUNKNOWN");
  fflush(stdout);
  return result;
}

#define CALL(name, ...) Report(name, syscall(__VA_ARGS__))

// Runs an attempt that could kill the caller in a child.
static void Apart(const char* name, long (*attempt)(void)) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    errno = 0;
    long result = attempt();
    _exit(result >= 0 ? 200 : errno < 200 ? errno : 199);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    printf("%s %s\n", name, sigabbrev_np(WTERMSIG(status)));
    return;
  }
  errno = WEXITSTATUS(status);
  Report(name, errno == 200 ? 0 : -1);
}

static void Mounts(char** arguments) {
  mkdir("/tmp/m", 0755);
  CALL("mount-tmpfs", SYS_mount, "none", "/tmp/m", "tmpfs", 0, 0);
  CALL("mount-proc", SYS_mount, "proc", "/tmp/m", "proc", 0, 0);
  CALL("mount-sysfs", SYS_mount, "sysfs", "/tmp/m", "sysfs", 0, 0);
  CALL("mount-cgroup", SYS_mount, "cgroup", "/tmp/m", "cgroup", 0, "memory");
  CALL("mount-cgroup2", SYS_mount, "cgroup2", "/tmp/m", "cgroup2", 0, 0);
  CALL("mount-overlay", SYS_mount, "overlay", "/tmp/m", "overlay", 0, "lowerdir=/,upperdir=/tmp,workdir=/tmp");
  CALL("mount-bind", SYS_mount, "/", "/tmp/m", 0, 4096 /* MS_BIND */, 0);
  CALL("mount-remount", SYS_mount, 0, "/proc/sys", 0, 32 | 4096 /* MS_REMOUNT | MS_BIND */, 0);
  CALL("mount-shared", SYS_mount, 0, "/", 0, (1 << 20) | 16384 /* MS_SHARED | MS_REC */, 0);
  CALL("umount2", SYS_umount2, "/proc/keys", 0);
  CALL("umount2-detach", SYS_umount2, "/proc/sys", 2);
  CALL("open_tree", 428, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */);
  CALL("open_tree_attr", 467, AT_FDCWD, "/", 1, 0, 0);
  CALL("move_mount", 429, AT_FDCWD, "/proc", AT_FDCWD, "/tmp/m", 0);
  CALL("fsopen", 430, "tmpfs", 0);
  CALL("fsconfig", 431, 0, 6, 0, 0, 0);
  CALL("fsmount", 432, 0, 0, 0);
  CALL("fspick", 433, AT_FDCWD, "/", 0);
  uint64_t attributes[4] = {0, 1, 0, 0};  // clear MOUNT_ATTR_RDONLY
  CALL("mount_setattr", 442, AT_FDCWD, "/proc/sys", 0, attributes, sizeof attributes);
  CALL("statmount", 457, 0, 0, 0, 0);
  CALL("listmount", 458, 0, 0, 0, 0);
}

// Prints whether the file of the host is to be seen after the breakout of the manuals.
static void Chroot(char** arguments) {
  struct stat before, after, canary;
  stat("/", &before);
  CALL("pivot_root", SYS_pivot_root, "/tmp", "/tmp");
  mkdir("/tmp/cell", 0755);
  int kept = open("/", O_RDONLY | O_DIRECTORY);
  if (Report("chroot", chroot("/tmp/cell")) == 0) {
    fchdir(kept);
    for (int i = 0; i < 100; ++i) chdir("..");
    chroot(".");
  } else {
    for (int i = 0; i < 100; ++i) chdir("..");
  }
  stat(".", &after);
  errno = ENOENT;
  int same = before.st_dev == after.st_dev && before.st_ino == after.st_ino;
  printf("root-%s OK\n", same ? "same" : "other");
  Report("canary", stat(arguments[0] + 1, &canary));
  Report("canary-from-root", stat(arguments[0], &canary));
}

static const struct { const char* name; unsigned long flag; } kNamespaces[] = {
    {"user", CLONE_NEWUSER}, {"mount", CLONE_NEWNS}, {"pid", CLONE_NEWPID}, {"net", CLONE_NEWNET},
    {"uts", CLONE_NEWUTS},   {"ipc", CLONE_NEWIPC},  {"cgroup", CLONE_NEWCGROUP}, {"time", 0x80}};

static void Namespaces(char** arguments) {
  char name[64];
  for (size_t i = 0; i < sizeof kNamespaces / sizeof *kNamespaces; ++i) {
    unsigned long flag = kNamespaces[i].flag;
    snprintf(name, sizeof name, "unshare-%s", kNamespaces[i].name);
    CALL(name, SYS_unshare, flag);
    snprintf(name, sizeof name, "unshare-user+%s", kNamespaces[i].name);
    CALL(name, SYS_unshare, flag | CLONE_NEWUSER);
    snprintf(name, sizeof name, "unshare-high-bits-%s", kNamespaces[i].name);
    CALL(name, SYS_unshare, flag | 0xf00000000000);
    if (flag != 0x80) {
      snprintf(name, sizeof name, "clone-%s", kNamespaces[i].name);
      long child = syscall(SYS_clone, flag | SIGCHLD, 0, 0, 0, 0);
      if (child == 0) _exit(0);
      Report(name, child);
    }
    uint64_t request[11] = {flag | CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
    snprintf(name, sizeof name, "clone3-user+%s", kNamespaces[i].name);
    long child = syscall(SYS_clone3, request, sizeof request);
    if (child == 0) _exit(0);
    Report(name, child);
  }
}

// setns by every descriptor of every process in sight, and by pidfd. A line per kind of answer.
static void Setns(char** arguments) {
  DIR* all = opendir("/proc");
  char path[400], name[400];
  for (struct dirent* process; (process = readdir(all));) {
    if (process->d_name[0] < '0' || process->d_name[0] > '9') continue;
    snprintf(path, sizeof path, "/proc/%s/ns", process->d_name);
    DIR* kinds = opendir(path);
    for (struct dirent* kind; kinds && (kind = readdir(kinds));) {
      if (kind->d_name[0] == '.') continue;
      snprintf(path, sizeof path, "/proc/%s/ns/%s", process->d_name, kind->d_name);
      int fd = open(path, O_RDONLY);
      snprintf(name, sizeof name, "setns-%s-%s", process->d_name, kind->d_name);
      if (fd < 0) Report(name, -1);
      else CALL(name, SYS_setns, fd, 0);
      close(fd);
    }
    if (kinds) closedir(kinds);
  }
  int pidfd = syscall(SYS_pidfd_open, 1, 0);
  CALL("setns-pidfd", SYS_setns, pidfd, CLONE_NEWUSER | CLONE_NEWNS);
}

// Arguments: pids of the host.
static void Processes(char** arguments) {
  char name[64], buffer[16];
  for (; *arguments; ++arguments) {
    pid_t pid = atoi(*arguments);
    struct iovec mine = {buffer, sizeof buffer}, theirs = {(void*)0x400000, sizeof buffer};
    snprintf(name, sizeof name, "kill-%d", pid);
    CALL(name, SYS_kill, pid, 0);
    snprintf(name, sizeof name, "ptrace-%d", pid);
    CALL(name, SYS_ptrace, PTRACE_ATTACH, pid, 0, 0);
    snprintf(name, sizeof name, "readv-%d", pid);
    CALL(name, SYS_process_vm_readv, pid, &mine, 1, &theirs, 1, 0);
    snprintf(name, sizeof name, "writev-%d", pid);
    CALL(name, SYS_process_vm_writev, pid, &mine, 1, &theirs, 1, 0);
    snprintf(name, sizeof name, "pidfd_open-%d", pid);
    long fd = CALL(name, SYS_pidfd_open, pid, 0);
    snprintf(name, sizeof name, "prlimit-%d", pid);
    CALL(name, SYS_prlimit64, pid, 7, 0, buffer);
    snprintf(name, sizeof name, "sched-%d", pid);
    CALL(name, SYS_sched_setaffinity, pid, 8, "\1\0\0\0\0\0\0\0");
    for (int i = 0; fd >= 0 && i < 8; ++i) CALL("pidfd_getfd", SYS_pidfd_getfd, fd, i, 0);
  }
}

static void Kernel(char** arguments) {
  char space[256] = {0};
  for (int command = 0; command < 8; ++command) {
    snprintf(space + 128, 32, "bpf-%d", command);
    CALL(space + 128, SYS_bpf, command, space, 64);
  }
  CALL("perf_event_open", SYS_perf_event_open, space, 0, -1, -1, 0);
  CALL("userfaultfd", SYS_userfaultfd, 1);
  CALL("io_uring_setup", 425, 8, space);
  CALL("io_uring_enter", 426, 0, 0, 0, 0, 0, 0);
  CALL("io_uring_register", 427, 0, 0, 0, 0);
  CALL("io_setup", SYS_io_setup, 1, space);
  CALL("mbind", SYS_mbind, 0, 0, 0, 0, 0, 0);
  CALL("get_mempolicy", SYS_get_mempolicy, 0, 0, 0, 0, 0);
  CALL("set_mempolicy", SYS_set_mempolicy, 0, 0, 0);
  CALL("set_mempolicy_home_node", 450, 0, 0, 0, 0);
  CALL("kcmp", SYS_kcmp, getpid(), getpid(), 0, 0, 0);
  CALL("remap_file_pages", SYS_remap_file_pages, 0, 0, 0, 0, 0);
}

static void Huge(char** arguments) {
  CALL("mmap", SYS_mmap, 0, 2 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  CALL("mmap-1G", SYS_mmap, 0, 1 << 30, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 30 << 26, -1, 0);
  CALL("mmap-high-bits", SYS_mmap, 0, 2 << 20, 3, 0x100040022, -1, 0);
  CALL("memfd", SYS_memfd_create, "huge", 4);
  CALL("memfd-all-flags", SYS_memfd_create, "", 0xffffffff);
  CALL("shmget", SYS_shmget, 0, 2 << 20, 04000 | 01000 | 0600);
}

static void Keys(char** arguments) {
  CALL("add_key", SYS_add_key, "user", "caisson", "x", 1, -3);
  CALL("request_key", SYS_request_key, "user", "caisson", 0, -3);
  for (int command = 0; command < 32; ++command) {
    char name[32];
    snprintf(name, sizeof name, "keyctl-%d", command);
    CALL(name, SYS_keyctl, command, -3, 1, 0, 0);
  }
}

static void Machine(char** arguments) {
  CALL("kexec_load", SYS_kexec_load, 0, 0, 0, 0);
  CALL("kexec_file_load", SYS_kexec_file_load, -1, -1, 0, "", 0);
  CALL("init_module", SYS_init_module, "x", 1, "");
  CALL("finit_module", SYS_finit_module, 0, "", 0);
  CALL("delete_module", SYS_delete_module, "nothing", 0);
  // SECURITY: with magic numbers that the kernel refuses, in case the filter lets it through.
  CALL("reboot", SYS_reboot, 1, 2, 3, 0);
  CALL("swapon", SYS_swapon, "/tmp/none", 0);
  CALL("swapoff", SYS_swapoff, "/tmp/none");
  CALL("acct", SYS_acct, "/tmp/none");
  CALL("quotactl", SYS_quotactl, 0x800001 << 8, "/dev/vda", 0, 0);
  CALL("syslog", SYS_syslog, 3, (char[64]){0}, 64);
  CALL("fanotify_init", SYS_fanotify_init, 0, 0);
  CALL("vhangup", SYS_vhangup);
  CALL("lookup_dcookie", SYS_lookup_dcookie, 0, 0, 0);
  CALL("uselib", 134, "/bin/true");
  CALL("nfsservctl", 180, 0, 0, 0);
  CALL("modify_ldt", SYS_modify_ldt, 0, 0, 0);
}

static void Handles(char** arguments) {
  struct { unsigned bytes; int type; unsigned char data[128]; } handle = {128, 0, {0}};
  int mount = 0, root = open("/", O_RDONLY | O_DIRECTORY);
  syscall(SYS_name_to_handle_at, AT_FDCWD, "/etc/passwd", &handle, &mount, 0);
  CALL("own-file", SYS_open_by_handle_at, root, &handle, O_RDONLY);
  struct { unsigned bytes; int type; uint32_t data[2]; } forged = {8, 1, {2, 0}};
  const char* anchors[] = {"/", "/.caisson/envd", "/proc/meminfo", "/proc/keys", "/sys/firmware"};
  for (size_t i = 0; i < 5; ++i) {
    char name[64];
    snprintf(name, sizeof name, "forged-root-by-%s", anchors[i]);
    int anchor = open(anchors[i], O_RDONLY);
    CALL(name, SYS_open_by_handle_at, anchor, &forged, O_RDONLY | O_DIRECTORY);
    close(anchor);
  }
}

static void Devices(char** arguments) {
  CALL("iopl", SYS_iopl, 3);
  CALL("ioperm", SYS_ioperm, 0x80, 1, 1);
  const char* paths[] = {"/dev/mem", "/dev/kmem", "/dev/kmsg", "/dev/port", "/dev/sda",
                         "/dev/vda", "/dev/loop0", "/dev/loop-control", "/dev/kvm", "/dev/vhost-net",
                         "/dev/net/tun", "/dev/console", "/dev/mapper/control", "/dev/uinput",
                         "/dev/snapshot", "/dev/cuse", "/dev/nvme0n1", "/dev/vsock", "/proc/kmsg"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; ++i)
    Report(paths[i], open(paths[i], O_RDONLY | O_NONBLOCK));
  struct { mode_t type; int major, minor; } nodes[] = {
      {S_IFBLK, 7, 0}, {S_IFBLK, 8, 0}, {S_IFBLK, 254, 0}, {S_IFBLK, 259, 0}, {S_IFCHR, 1, 1},
      {S_IFCHR, 1, 4}, {S_IFCHR, 1, 11}, {S_IFCHR, 10, 200}, {S_IFCHR, 10, 237}, {S_IFCHR, 5, 1}};
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; ++i) {
    char name[64];
    unlink("/tmp/node");
    snprintf(name, sizeof name, "mknod-%d:%d", nodes[i].major, nodes[i].minor);
    CALL(name, SYS_mknod, "/tmp/node", nodes[i].type | 0666, makedev(nodes[i].major, nodes[i].minor));
  }
}

static void Clocks(char** arguments) {
  long now[2] = {1, 0};
  char zeros[256] = {0};
  *(int*)zeros = 0x8000 | 0x0001;  // ADJ_OFFSET_SINGLESHOT
  CALL("clock_settime", SYS_clock_settime, 0, now);
  CALL("settimeofday", SYS_settimeofday, now, 0);
  CALL("adjtimex", SYS_adjtimex, zeros);
  CALL("clock_adjtime", SYS_clock_adjtime, 0, zeros);
  CALL("sethostname", SYS_sethostname, "taken", 5);
  CALL("setdomainname", SYS_setdomainname, "taken", 5);
}

static long X32Mount(void) { return syscall(0x40000000 | SYS_mount, "none", "/tmp", "tmpfs", 0, 0); }
static long X32Getpid(void) { return syscall(0x40000000 | SYS_getpid); }
static long X32Ptrace(void) { return syscall(0x40000000 | 521, 16, 1, 0, 0); }
static long Int80(long number, long first) {
  long result;
  asm volatile("int $0x80" : "=a"(result) : "a"(number), "b"(first), "c"(0), "d"(0), "S"(0), "D"(0)
               : "memory", "r8", "r9", "r10", "r11");
  if (result < 0 && result > -4096) errno = -result, result = -1;
  return result;
}
static long I386Getpid(void) { return Int80(20, 0); }
static long I386Mount(void) { return Int80(21, 0); }
static long I386Unshare(void) { return Int80(310, CLONE_NEWUSER); }
static long I386Keyctl(void) { return Int80(288, 0); }
static long I386Socket(void) { return Int80(359, 17); }

static void Abi(char** arguments) {
  Apart("x32-mount", X32Mount);
  Apart("x32-getpid", X32Getpid);
  Apart("x32-ptrace", X32Ptrace);
  Apart("i386-getpid", I386Getpid);
  Apart("i386-mount", I386Mount);
  Apart("i386-unshare", I386Unshare);
  Apart("i386-keyctl", I386Keyctl);
  Apart("i386-socket", I386Socket);
  CALL("personality-read-implies-exec", SYS_personality, 0x0400000);
  CALL("personality-mmap-page-zero", SYS_personality, 0x0100000);
  CALL("personality-compat-layout", SYS_personality, 0x0200000);
  CALL("personality-svr4", SYS_personality, 0x4000001);
  for (int what = 1; what <= 15; ++what) {
    char name[32];
    snprintf(name, sizeof name, "set-mm-%d", what);
    if (what != 15) CALL(name, SYS_prctl, PR_SET_MM, what, 0x10000, 0, 0);  // 15 only asks a size
  }
  CALL("beyond-the-table", 600);
  CALL("negative", -1);
}

// All that may be asked for: a line for each kind that is opened, and one for each way of refusal.
static void Sockets(char** arguments) {
  char refused[256] = {0}, name[64];
  for (int family = 0; family < 300; ++family) {
    for (int type = 0; type < 16; ++type) {
      int pair[2] = {-1, -1};
      if (syscall(SYS_socketpair, family, type, 0, pair) == 0) printf("pair-%d-%d OK\n", family, type);
      else refused[errno] = 1;
      close(pair[0]), close(pair[1]);
      for (int protocol = 0; protocol < 300; ++protocol) {
        int fd = syscall(SYS_socket, family, type, protocol);
        if (fd < 0) refused[errno] = 1;
        else printf("socket-%d-%d-%d OK\n", family, type, protocol);
        if (fd >= 0) close(fd);
      }
    }
  }
  for (int error = 0; error < 256; ++error)
    if (refused[error]) printf("refused-%s OK\n", strerrorname_np(error));
  CALL("packet-high-bits", SYS_socket, 0x100000011, SOCK_RAW, 0);
  CALL("packet-flags", SYS_socket, 17, SOCK_RAW | SOCK_CLOEXEC, 0);
  CALL("protocol-high-bits", SYS_socket, AF_INET, SOCK_STREAM, 0x10000106);
  CALL("netfilter-high-bits", SYS_socket, AF_NETLINK, SOCK_RAW, 0x10000000c);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  const char* layers[] = {"tls", "espintcp", "mptcp", "smc", "caisson"};
  for (size_t i = 0; i < sizeof layers / sizeof *layers; ++i) {
    snprintf(name, sizeof name, "layer-%s", layers[i]);
    CALL(name, SYS_setsockopt, fd, 6, 31 /* TCP_ULP */, layers[i], strlen(layers[i]));
  }
  CALL("layer-high-bits", SYS_setsockopt, fd, 0x100000006, 0x10000001f, "tls", 3);
}

static void Netlink(char** arguments) {
  struct { struct nlmsghdr head; struct rtmsg route; } route = {
      {sizeof route, RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 1, 0},
      {AF_INET, 0, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_LINK, RTN_BLACKHOLE, 0}};
  struct { struct nlmsghdr head; struct ifinfomsg link; } link = {
      {sizeof link, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 2, 0}, {AF_UNSPEC, 0, 1, 0, 1}};
  struct { struct nlmsghdr head; struct ifaddrmsg address; char data[8]; } address = {
      {sizeof address, RTM_NEWADDR, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 3, 0},
      {AF_INET, 32, 0, 0, 1}, {8, 0, 2 /* IFA_LOCAL */, 0, 10, 9, 9, 9}};
  struct { const char* name; void* data; size_t size; } messages[] = {
      {"route", &route, sizeof route}, {"link", &link, sizeof link},
      {"address", &address, sizeof address}};
  for (size_t i = 0; i < 3; ++i) {
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    send(fd, messages[i].data, messages[i].size, 0);
    struct { struct nlmsghdr head; struct nlmsgerr error; char rest[512]; } answer = {0};
    long size = recv(fd, &answer, sizeof answer, 0);
    errno = size > 0 ? -answer.error.error : errno;
    Report(messages[i].name, size > 0 && answer.error.error == 0 ? 0 : -1);
    close(fd);
  }
  struct { struct nlmsghdr head; unsigned char family, version; uint16_t id; } tables = {
      {sizeof tables, (10 << 8) | 1 /* NFT_MSG_GETTABLE */, NLM_F_REQUEST | NLM_F_DUMP, 4, 0}, 0, 0, 0};
  int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
  if (fd < 0) {
    Report("nftables", -1);
    return;
  }
  struct timeval wait = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  send(fd, &tables, sizeof tables, 0);
  struct { struct nlmsghdr head; struct nlmsgerr error; char rest[512]; } answer = {0};
  long size = recv(fd, &answer, sizeof answer, 0);
  int refused = size < 0 || (answer.head.nlmsg_type == NLMSG_ERROR && answer.error.error != 0);
  if (size >= 0) errno = -answer.error.error;
  Report("nftables", refused ? -1 : 0);
}

static void Terminal(char** arguments) {
  int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY), number = 0, unlock = 0;
  ioctl(master, TIOCSPTLCK, &unlock);
  ioctl(master, TIOCGPTN, &number);
  char path[64];
  snprintf(path, sizeof path, "/dev/pts/%d", number);
  if (fork() != 0) {
    wait(0);
    return;
  }
  setsid();
  int tty = open(path, O_RDWR);
  ioctl(tty, TIOCSCTTY, 0);
  unsigned char code = 1;
  CALL("tiocsti", SYS_ioctl, tty, TIOCSTI, "x");
  CALL("tiocsti-high-bits", SYS_ioctl, tty, 0x100000000 | TIOCSTI, "x");
  CALL("tiocsti-master", SYS_ioctl, master, TIOCSTI, "x");
  for (code = 0; code < 20; ++code) {
    char name[32];
    snprintf(name, sizeof name, "tioclinux-%d", code);
    CALL(name, SYS_ioctl, tty, TIOCLINUX, &code);
  }
  CALL("tioccons", SYS_ioctl, tty, 0x541D, 0);
  for (int line = 1; line < 31; ++line) {
    char name[32];
    snprintf(name, sizeof name, "tiocsetd-%d", line);
    CALL(name, SYS_ioctl, tty, TIOCSETD, &line);
  }
  _exit(0);
}

int main(int count, char** arguments) {
  static const struct { const char* name; void (*run)(char**); } kGroups[] = {
      {"mounts", Mounts},   {"chroot", Chroot},     {"namespaces", Namespaces}, {"setns", Setns},
      {"processes", Processes}, {"kernel", Kernel}, {"huge", Huge}, {"keys", Keys},     {"machine", Machine},
      {"handles", Handles}, {"devices", Devices},   {"clocks", Clocks}, {"abi", Abi},
      {"sockets", Sockets}, {"netlink", Netlink}, {"terminal", Terminal}};
  for (size_t i = 0; count > 1 && i < sizeof kGroups / sizeof *kGroups; ++i) {
    if (strcmp(kGroups[i].name, arguments[1])) continue;
    kGroups[i].run(arguments + 2);
    puts("end OK");
    return 0;
  }
  return 2;
}

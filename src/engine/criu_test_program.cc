// The program that criu_test.cc saves and continues; static, first process of its namespaces.
// Descriptor 0 is a listening socket: each connection gets the next number.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// A process below, which shall be saved, too.
static pid_t Sleeper() {
  pid_t pid = fork();
  while (pid == 0) pause();
  return pid;
}

// A dead session leader, and a dead process of its session that the first process inherits.
static void LeaveDead() {
  pid_t leader = fork();
  if (leader == 0) {
    setsid();
    pid_t last = fork();
    if (last > 0) waitid(P_PID, static_cast<id_t>(last), nullptr, WEXITED | WNOWAIT);
    _exit(last > 0 ? 3 : 0);
  }
  waitid(P_PID, static_cast<id_t>(leader), nullptr, WEXITED | WNOWAIT);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  pid_t child = Sleeper();
  size_t megabytes = argc > 2 ? strtoul(argv[2], nullptr, 10) : 1;
  size_t bytes = megabytes << 20;
  auto* memory = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) return 1;
  for (size_t at = 0; at < bytes; at += 64) memory[at] = static_cast<char>(at >> 6);
  if (strcmp(what, "traced") == 0 && ptrace(PTRACE_SEIZE, child, nullptr, nullptr) != 0) return 2;
  if (strcmp(what, "nested") == 0) {
    if (unshare(CLONE_NEWPID) != 0) return 3;
    Sleeper();
  }
  for (int n = 0; n < 50 && strcmp(what, "dead") == 0; ++n) LeaveDead();
  int watch = inotify_init1(IN_NONBLOCK);
  if (strcmp(what, "watching") == 0 && inotify_add_watch(watch, "/", IN_CREATE) < 0) return 8;
  int terminal = -1;
  if (strcmp(what, "terminal") == 0) {
    terminal = open("/pts/ptmx", O_RDWR | O_NOCTTY);
    if (terminal < 0 || unlockpt(terminal) != 0) return 4;
    int other = ioctl(terminal, 0x5441 /* TIOCGPTPEER */, O_RDWR | O_NOCTTY);
    if (other < 0 || write(terminal, "kept\n", 5) != 5) return 5;
  }
  for (int count = 1;; ++count) {
    int connection = accept(0, nullptr, nullptr);
    if (connection < 0) return 6;
    bool intact = kill(child, 0) == 0;
    for (size_t at = 0; at < bytes; at += 64)
      intact = intact && memory[at] == static_cast<char>(at >> 6);
    char text[512];
    const char* found =
        intact ? read(watch, text, sizeof text) > 0 ? "noticed" : "intact" : "broken";
    int length = snprintf(text, sizeof text, "%s %d\n", found, count);
    if (write(connection, text, static_cast<size_t>(length)) != length) return 7;
    close(connection);
  }
}

// Stands in for envd in the engine's tests: speaks the boot protocol (child.h) and then runs shell
// commands, one per connection to port 49983: the client sends the command and closes its side; it
// gets the output, and as last line "exit <code>".
//
// On SIGUSR1 it takes memory until the kernel ends it.
//
// What it was told at boot decides what it does: "fail:<text>" reports a failure, "exit" ends at
// once, "hang" never answers; everything else is written to /boot-data.
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace {

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  return text;
}

void Boot() {
  std::string boot = ReadAll(3);
  if (boot.starts_with("fail:")) {
    std::string text = "E" + boot.substr(5);
    (void)!write(3, text.data(), text.size());
    _exit(1);
  }
  if (boot == "exit") _exit(7);
  if (boot == "hang") pause();
  int file = open("/boot-data", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  (void)!write(file, boot.data(), boot.size());
  close(file);
}

void TakeAllMemory(int) {
  for (;;) {
    constexpr size_t kStep = 1 << 20;
    char* memory = static_cast<char*>(
        mmap(nullptr, kStep, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory != MAP_FAILED) std::memset(memory, 1, kStep);
  }
}

[[noreturn]] void Serve(int connection) {
  std::string command = ReadAll(connection);
  signal(SIGCHLD, SIG_DFL);
  signal(SIGUSR1, SIG_DFL);
  setpriority(PRIO_PROCESS, 0, 0);
  pid_t shell = fork();
  if (shell == 0) {
    dup2(connection, 1);
    dup2(connection, 2);
    close(connection);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(shell, &status, 0);
  dprintf(connection, "\nexit %d\n",
          WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  _exit(0);
}

}  // namespace

int main() {
  signal(SIGUSR1, TakeAllMemory);
  signal(SIGCHLD, SIG_IGN);  // orphans come here, and nobody asks for them
  int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(49983);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) ||
      listen(listener, 64)) {
    dprintf(3, "Ecannot listen: %m");
    return 1;
  }
  Boot();
  (void)!write(3, "R", 1);
  close(3);
  for (;;) {
    int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    if (fork() == 0) Serve(connection);
    close(connection);
  }
}

#include "envd/test_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "envd/boot.h"

namespace caisson::envd {

std::string Program::File() {
  // The tests are in build/tests, the programs in build/bin.
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() /
         "bin/caisson-envd";
}

Program::Program(ProgramOptions options) {
  int pair[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  boot_.Reset(pair[0]);
  UniqueFd theirs(pair[1]);
  std::string file = File();
  std::vector<std::string> texts;
  for (const auto& [name, value] : options.environment) texts.push_back(name + "=" + value);
  std::vector<char*> env;
  for (std::string& text : texts) env.push_back(text.data());
  env.push_back(nullptr);
  char* argv[] = {file.data(), nullptr};
  pid_ = static_cast<pid_t>(
      syscall(SYS_clone, options.namespaces | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  EXPECT_GE(pid_, 0) << strerror(errno);
  if (pid_ == 0) {
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
    if (options.before_exec) options.before_exec();
    dup2(theirs.get(), kBootFd);
    close_range(kBootFd + 1, ~0U, 0);
    execve(file.c_str(), argv, env.data());
    _exit(126);
  }
  theirs.Reset();
  EXPECT_EQ(write(boot_.get(), options.config.data(), options.config.size()),
            static_cast<ssize_t>(options.config.size()));
  shutdown(boot_.get(), SHUT_WR);
}

Program::~Program() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string Program::Answer() {
  std::string text;
  for (;;) {
    pollfd wait{boot_.get(), POLLIN, 0};
    if (poll(&wait, 1, 60'000) <= 0) return text + "(timeout)";
    char buffer[4096];
    ssize_t size = read(boot_.get(), buffer, sizeof buffer);
    if (size <= 0) return text;
    text.append(buffer, static_cast<size_t>(size));
  }
}

int Program::WaitForExit() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

size_t Program::ResidentBytes() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6)) * 1024;
  }
  return 0;
}

uint16_t FreePort() {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

}  // namespace caisson::envd

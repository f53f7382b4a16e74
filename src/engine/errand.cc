#include "engine/errand.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

namespace caisson::engine {

Result<Errand> Errand::Send(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return FailErrno("making a pipe");
  Errand errand;
  errand.reader_.Reset(ends[0]);
  UniqueFd writer(ends[1]);
  int parent = getpid();
  errand.pid_ = fork();
  if (errand.pid_ < 0) return FailErrno("starting a process");
  if (errand.pid_ > 0) return errand;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent) {
    std::string told = work();
    (void)!write(writer.get(), told.data(), told.size());
  }
  _exit(0);
}

Errand::Errand(Errand&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), reader_(std::move(other.reader_)) {}

Errand::~Errand() {
  if (pid_ > 0) Wait();
}

std::string Errand::Wait() {
  std::string told;
  char buffer[512];
  for (ssize_t n; (n = read(reader_.get(), buffer, sizeof(buffer))) != 0;) {
    if (n > 0) told.append(buffer, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  waitpid(std::exchange(pid_, -1), nullptr, 0);
  return told;
}

}  // namespace caisson::engine

// caisson-envd: PID 1 of every sandbox. What happens before it listens is what a user waits for,
// so everything that can come later does.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include "envd/boot.h"
#include "envd/daemon.h"
#include "envd/spawn.h"

namespace caisson::envd {
namespace {

// Memory that big answers used goes back to the system: envd lives as long as its sandbox.
void TuneMemory() {
  mallopt(M_MMAP_THRESHOLD, 64 << 10);
  mallopt(M_TRIM_THRESHOLD, 128 << 10);
  mallopt(M_ARENA_MAX, 1);
}

// Children get 0, 1 and 2 by dup2; those numbers must not be anything else here.
void FillStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", O_RDWR);
  }
}

int Run(int argc, char** argv) {
  TuneMemory();
  FillStandardDescriptors();
  signal(SIGPIPE, SIG_IGN);
  umask(022);
  UniqueFd engine;
  auto options = ParseArguments(argc, argv);
  if (!options) {
    ReportFailure(engine, options.error().message());
    return 2;
  }
  engine = TakeBootFd(*options);
  auto settings = ReadSettings(*options, engine);
  if (!settings) {
    ReportFailure(engine, settings.error().message());
    return 1;
  }
  asio::io_context loop(1);
  Daemon daemon(loop.get_executor(), *settings);
  Status started = daemon.Start();
  if (!started) {
    ReportFailure(engine, started.error().message());
    return 1;
  }
  ReportReady(engine, daemon.port());
  RaiseDescriptorLimit();
  if (getpid() == 1) WriteIdentity(*settings);
  loop.run();
  return 0;
}

}  // namespace
}  // namespace caisson::envd

int main(int argc, char** argv) { return caisson::envd::Run(argc, argv); }

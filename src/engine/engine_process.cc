// The engine's main process from its fork to its end.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "base/log.h"
#include "engine/capabilities.h"
#include "engine/client.h"
#include "engine/event_loop.h"
#include "engine/host.h"
#include "engine/mount.h"
#include "engine/namespace_driver.h"
#include "engine/pidfd.h"
#include "engine/process.h"
#include "engine/protocol.h"
#include "engine/supervisor.h"

namespace caisson::engine {
namespace {

// Longest start: thousands of dead sandboxes to remove.
constexpr std::chrono::minutes kStartTimeout{5};
// An earlier engine's launchers may still be ending what they had begun.
constexpr std::chrono::seconds kLockTimeout{40};

// One engine per data directory. Launchers inherit the descriptor, so the lock is free only when
// the last of them has ended too.
Result<UniqueFd> LockDirectory(const Config& config) {
  UniqueFd fd(open("lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return FailErrno("opening the engine's lock");
  auto deadline = std::chrono::steady_clock::now() + kLockTimeout;
  while (flock(fd.get(), LOCK_EX | LOCK_NB)) {
    if (errno != EWOULDBLOCK && errno != EINTR) return FailErrno("locking the engine's directory");
    if (std::chrono::steady_clock::now() > deadline)
      return Fail(Code::kFailedPrecondition, "another Caisson server uses {}", config.data_dir);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return fd;
}

struct Engine {
  UniqueFd lock;
  std::unique_ptr<EventLoop> loop;  // the others watch something in it
  std::unique_ptr<NamespaceDriver> driver;
  std::unique_ptr<Supervisor> supervisor;
};

Result<Engine> Prepare(const Config& config, int server) {
  TRY(TakeMountNamespace());
  TRY(KeepOnly(EngineCapabilities()));
  TRY(EnterEngineDirectory(config));
  Engine engine;
  TRY_ASSIGN(engine.lock, LockDirectory(config));
  engine.driver = std::make_unique<NamespaceDriver>(config);
  TRY(engine.driver->Prepare());
  TRY_ASSIGN(engine.loop, EventLoop::Create());
  TRY(SetNonBlocking(server));
  engine.supervisor =
      std::make_unique<Supervisor>(config, *engine.driver, *engine.loop, server, engine.lock.get());
  auto sandboxes = engine.driver->Recover();
  if (!sandboxes.empty()) LogInfo("took over living sandboxes", {{"count", sandboxes.size()}});
  TRY(engine.supervisor->Start(std::move(sandboxes)));
  return engine;
}

int RunEngine(const Config& config, int server) {
  SetProcessTitle("caisson: engine");
  setsid();
  umask(022);
  IgnoreSignals();
  RaiseOpenFileLimit();
  LiftFileLimitOfHost();
  // Sandboxes whose launcher died come to us and not to init, which might not reap them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  auto engine = Prepare(config, server);
  Message first;
  if (!engine) first.head["error"] = EncodeError(engine.error());
  if (!Send(server, first) || !engine) return 1;
  engine->driver->CheckLayersAhead();
  engine->supervisor->Run();
  if (engine->supervisor->idle()) engine->driver->CleanUp();
  return 0;
}

}  // namespace

Result<EngineProcess> StartEngineProcess(const Config& config) {
  if (geteuid() != 0)
    return Fail(Code::kPermissionDenied,
                "sandboxes need root: namespaces, mounts and cgroups are made by the engine");
  TRY_ASSIGN(SocketPair pair, MakeSocketPair());
  int theirs = pair.second.get();
  TRY_ASSIGN(Forked forked, ForkProcess({theirs}, [&] { return RunEngine(config, theirs); }));
  pair.second.Reset();
  auto timeout = std::chrono::milliseconds(kStartTimeout).count();
  pollfd item{pair.first.get(), POLLIN, 0};
  if (poll(&item, 1, static_cast<int>(timeout)) != 1) {
    SendSignal(forked.process.get(), SIGKILL);
    return Fail(Code::kDeadlineExceeded, "the engine did not start in {} ms", timeout);
  }
  auto first = Receive(pair.first.get());
  if (!first) return Fail(Code::kInternal, "the engine ended while it started");
  TRY(DecodeStatus(first->head));
  return EngineProcess{forked.pid, std::move(pair.first)};
}

}  // namespace caisson::engine

// The isolation engine: what a sandbox is to the kernel. Knows nothing of HTTP, SQL or E2B.
//
// A Driver is one way to isolate (`namespace` is built in). It runs in the engine process, which is
// root; the server process talks to it through engine/client.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "base/time.h"

namespace caisson::engine {

struct Limits {
  int64_t cpus = 2;  // whole CPUs of time per second
  int64_t memory_bytes = 1 << 30;
  int64_t disk_bytes = int64_t{10} << 30;
  int64_t pids = 4096;
};

// What the sandbox may reach. Its loopback is always up.
enum class Network {
  kNone,      // loopback only
  kInternet,  // the internet; never private ranges, the host, or other sandboxes
};

struct Spec {
  std::string id;        // [a-z0-9]+, unique
  std::string root_dir;  // the template's read-only root file system
  Limits limits;
  Network network = Network::kInternet;
  // Opaque to the engine: handed to envd on its boot descriptor (at most kMaxBootBytes).
  std::string boot;
};
inline constexpr size_t kMaxBootBytes = 160 << 10;

struct Instance {
  std::string id;
  int pid = 0;  // envd, as the host sees it
  Time created_at;
};

struct Usage {
  Time at;
  int64_t cpu_ns = 0;             // since the start
  int64_t memory_used_bytes = 0;  // without page cache
  int64_t memory_cache_bytes = 0;
  int64_t memory_limit_bytes = 0;
  int64_t disk_used_bytes = 0;
  int64_t disk_total_bytes = 0;
  int64_t pids = 0;
  int64_t oom_kills = 0;
};

// Why a sandbox is no more, when nobody asked for it.
enum class ExitReason { kEnvdExited, kEnvdKilled, kOutOfMemory, kUnknown };
std::string_view ExitReasonName(ExitReason reason);

struct Capabilities {
  bool pause = false;
  bool snapshot = false;
  bool fork = false;
  bool network = false;
};

// Blocking calls, on the engine process's own threads of control. All are idempotent where the word
// allows it.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string_view name() const = 0;
  virtual Capabilities capabilities() const = 0;

  // Builds a sandbox and returns when envd says it is ready. On any failure nothing is left.
  virtual Result<Instance> Create(const Spec& spec) = 0;
  // Kills everything inside and removes every trace. Unknown ids succeed.
  virtual Status Destroy(const std::string& id) = 0;
  // `count` unconnected TCP sockets (IPv6, dual-stack) living in the sandbox's network: connect()
  // to [::ffff:127.0.0.1]:port or [::1]:port from any process reaches the sandbox's own loopback.
  virtual Result<std::vector<UniqueFd>> Dial(const std::string& id, size_t count) = 0;
  virtual Result<Usage> Measure(const std::string& id) = 0;
  // Sandboxes that live now, those of an earlier engine process included.
  virtual Result<std::vector<Instance>> List() = 0;

  // Not every driver, nor every machine, can do these.
  virtual Status Pause(const std::string& id);
  virtual Status Resume(const std::string& id);
  virtual Result<std::string> Snapshot(const std::string& id);
  virtual Result<Instance> Fork(const std::string& id, const std::string& new_id);
};

}  // namespace caisson::engine

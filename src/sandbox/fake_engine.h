// An engine without a kernel, for tests of what stands above it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <limits>
#include <map>
#include <set>

#include "engine/client.h"

namespace caisson::sandbox {

class FakeEngine : public engine::Engine {
 public:
  void OnExit(ExitHandler handler) override { on_exit = std::move(handler); }
  void OnBlocked(BlockedHandler handler) override { on_blocked = std::move(handler); }
  void OnHeld(HeldHandler handler) override { on_held = std::move(handler); }

  Task<Result<engine::Instance>> Create(engine::Spec spec, std::chrono::milliseconds) override {
    ++creates;
    last_spec = spec;
    std::string id = spec.id;
    co_await Work("create", create_takes);
    if (create_fails || create_fails_from < creates)
      co_return tl::unexpected(create_fails.value_or(Error(Code::kUnavailable, "no room")));
    bool continued = false;
    if (!spec.snapshot.empty()) {
      auto it = saved.find(spec.snapshot);
      if (it == saved.end()) co_return Fail(Code::kNotFound, "no such snapshot");
      continued = it->second.tier == engine::Tier::kMemory;
    }
    instances[id] = spec;
    if (exit_after_create) on_exit(id, *exit_after_create);
    co_return engine::Instance{.id = id, .pid = 1, .created_at = Now(), .continued = continued};
  }

  Task<Status> Destroy(std::string id) override {
    ++destroys;
    co_await Work("destroy", destroy_takes);
    if (destroy_failures > 0) {
      --destroy_failures;
      co_return Fail(Code::kInternal, "a test wants this to fail");
    }
    instances.erase(id);
    saved.erase(id);
    destroyed.insert(id);
    co_return Status();
  }

  Task<Result<std::vector<UniqueFd>>> Dial(std::string id, size_t count) override {
    ++dials;
    co_await Work("dial", std::chrono::milliseconds(1));
    if (dial_fails) co_return tl::unexpected(*dial_fails);
    if (!instances.contains(id)) co_return Fail(Code::kNotFound, "no such sandbox");
    std::vector<UniqueFd> sockets;
    for (size_t i = 0; i < count; ++i)
      sockets.emplace_back(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    co_return sockets;
  }

  // On this machine's own loopback.
  Task<Result<UniqueFd>> Listen(std::string id, uint16_t port) override {
    if (!instances.contains(id)) co_return Fail(Code::kNotFound, "no such sandbox");
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) ||
        listen(fd.get(), 16))
      co_return Fail(Code::kAlreadyExists, "port {} is taken", port);
    co_return fd;
  }

  Task<Result<std::vector<std::pair<std::string, engine::Usage>>>> Measure(
      std::vector<std::string> ids) override {
    ++measures;
    std::vector<std::pair<std::string, engine::Usage>> usages;
    for (const std::string& id : ids)
      if (instances.contains(id)) {
        usages.emplace_back(id, usage);
        usages.back().second.at = Now();
      }
    co_return usages;
  }

  Task<Result<std::vector<engine::Instance>>> List() override {
    std::vector<engine::Instance> list;
    for (const auto& [id, spec] : instances) list.push_back({.id = id, .pid = 1});
    co_return list;
  }

  Task<Result<engine::Capabilities>> GetCapabilities() override {
    co_return engine::Capabilities{.memory = true, .network = true, .open_files = open_files};
  }

  Task<Result<engine::Saved>> Pause(std::string id, bool memory,
                                    std::chrono::milliseconds) override {
    ++pauses;
    co_await Work("pause", pause_takes);
    if (pause_fails && (memory || pause_of_files_fails)) co_return tl::unexpected(*pause_fails);
    if (!instances.erase(id)) co_return Fail(Code::kNotFound, "no such sandbox");
    engine::Saved state{.id = id, .tier = memory ? memory_tier : engine::Tier::kFiles, .at = Now()};
    state.memory_bytes = memory ? 1 << 20 : 0;
    state.disk_bytes = 1 << 10;
    if (state.tier == engine::Tier::kFrozen) state.why_frozen = "a test wants it";
    saved[id] = state;
    co_return state;
  }

  Task<Result<engine::Instance>> Resume(engine::Spec spec, bool memory,
                                        std::chrono::milliseconds) override {
    ++resumes;
    last_spec = spec;
    std::string id = spec.id;
    co_await Work("resume", resume_takes);
    if (resume_fails) co_return tl::unexpected(*resume_fails);
    auto it = saved.find(id);
    if (it == saved.end()) co_return Fail(Code::kNotFound, "nothing was saved");
    bool continued = memory && it->second.tier != engine::Tier::kFiles;
    saved.erase(it);
    instances[id] = spec;
    co_return engine::Instance{.id = id, .pid = 1, .created_at = Now(), .continued = continued};
  }

  Task<Result<engine::Saved>> Snapshot(std::string id, std::string snapshot_id, bool memory,
                                       std::chrono::milliseconds) override {
    if (snapshot_takes.count() > 0) co_await SleepFor(snapshot_takes);
    if (snapshot_fails) co_return tl::unexpected(*snapshot_fails);
    if (!instances.contains(id)) co_return Fail(Code::kNotFound, "no such sandbox");
    memory = memory && memory_tier == engine::Tier::kMemory;
    saved[snapshot_id] = {.id = snapshot_id,
                          .tier = memory ? engine::Tier::kMemory : engine::Tier::kFiles,
                          .memory_bytes = memory ? 1 << 20 : 0,
                          .disk_bytes = 1 << 10,
                          .at = Now()};
    co_return saved[snapshot_id];
  }

  Task<Status> DeleteSaved(std::string id) override {
    saved.erase(id);
    co_return Status();
  }

  Task<Result<std::optional<engine::Saved>>> GetSaved(std::string id) override {
    auto found = saved.find(id);
    if (found == saved.end()) co_return std::nullopt;
    co_return found->second;
  }

  Task<Result<std::vector<engine::Saved>>> ListSaved() override {
    std::vector<engine::Saved> list;
    for (const auto& [id, state] : saved) list.push_back(state);
    co_return list;
  }

  Task<Status> SetLimits(std::string id, engine::Limits limits) override {
    auto it = instances.find(id);
    if (it == instances.end()) co_return Fail(Code::kNotFound, "no such sandbox");
    if (set_limits_fails) co_return tl::unexpected(*set_limits_fails);
    it->second.limits = limits;
    co_return Status();
  }

  Task<Status> GrowDisk(std::string id, int64_t bytes, std::chrono::milliseconds) override {
    if (!saved.contains(id)) co_return Fail(Code::kNotFound, "nothing was saved");
    if (grow_fails) co_return tl::unexpected(*grow_fails);
    grown[id] = bytes;
    co_return Status();
  }

  Task<Status> SetEgress(std::string id, engine::Egress egress) override {
    co_await SleepFor(set_egress_takes);
    if (set_egress_fails) co_return tl::unexpected(*set_egress_fails);
    auto it = instances.find(id);
    if (it == instances.end()) co_return Fail(Code::kNotFound, "no such sandbox");
    it->second.egress = std::move(egress);
    co_return Status();
  }

  // The sandbox ends by itself.
  void Exit(const std::string& id, engine::ExitReason reason) {
    instances.erase(id);
    on_exit(id, reason);
  }

  // What a test wants to happen.
  std::string held;  // the call ("pause", ...) that does not end as long as it stands here
  std::optional<Error> create_fails;
  std::optional<Error> dial_fails;
  std::optional<Error> set_egress_fails, set_limits_fails, grow_fails;
  std::optional<Error> pause_fails, resume_fails, snapshot_fails;
  bool pause_of_files_fails = true;  // with pause_fails: also a pause without memory
  std::chrono::milliseconds pause_takes{0}, resume_takes{0}, snapshot_takes{0}, set_egress_takes{0};
  int create_fails_from = std::numeric_limits<int>::max();  // creations after so many fail
  engine::Tier memory_tier = engine::Tier::kMemory;         // kFrozen: where memory cannot be saved
  std::optional<engine::ExitReason> exit_after_create;
  int destroy_failures = 0;
  int64_t open_files = 0;  // that the host allows
  std::chrono::milliseconds create_takes{0};
  std::chrono::milliseconds destroy_takes{0};
  engine::Usage usage{.memory_used_bytes = 1, .memory_limit_bytes = 2, .disk_total_bytes = 4};

  // What has happened.
  std::map<std::string, engine::Spec> instances;
  std::map<std::string, engine::Saved> saved;
  std::map<std::string, int64_t> grown;  // disks of paused ones, in bytes
  std::set<std::string> destroyed;
  engine::Spec last_spec;
  int creates = 0, destroys = 0, pauses = 0, resumes = 0, dials = 0, measures = 0;
  ExitHandler on_exit;
  BlockedHandler on_blocked;
  HeldHandler on_held;

 private:
  Task<void> Work(std::string call, std::chrono::milliseconds takes) {
    if (takes.count() > 0) co_await SleepFor(takes);
    while (held == call) {
      co_await SleepFor(std::chrono::milliseconds(1));
      auto state = co_await asio::this_coro::cancellation_state;
      if (state.cancelled() != asio::cancellation_type::none) co_return;
    }
  }
};

}  // namespace caisson::sandbox

// An engine without a kernel, for tests of what stands above it.
#pragma once

#include <sys/socket.h>

#include <map>
#include <set>

#include "engine/client.h"

namespace caisson::sandbox {

class FakeEngine : public engine::Engine {
 public:
  void OnExit(ExitHandler handler) override { on_exit = std::move(handler); }

  Task<Result<engine::Instance>> Create(engine::Spec spec, std::chrono::milliseconds) override {
    ++creates;
    last_spec = spec;
    std::string id = spec.id;
    if (create_takes.count() > 0) co_await SleepFor(create_takes);
    if (create_fails) co_return tl::unexpected(*create_fails);
    instances[id] = spec;
    if (exit_after_create) on_exit(id, *exit_after_create);
    co_return engine::Instance{.id = id, .pid = 1, .created_at = Now()};
  }

  Task<Status> Destroy(std::string id) override {
    ++destroys;
    if (destroy_takes.count() > 0) co_await SleepFor(destroy_takes);
    if (destroy_failures > 0) {
      --destroy_failures;
      co_return Fail(Code::kInternal, "a test wants this to fail");
    }
    instances.erase(id);
    destroyed.insert(id);
    co_return Status();
  }

  Task<Result<std::vector<UniqueFd>>> Dial(std::string id, size_t count) override {
    ++dials;
    co_await SleepFor(std::chrono::milliseconds(1));
    if (dial_fails) co_return tl::unexpected(*dial_fails);
    if (!instances.contains(id)) co_return Fail(Code::kNotFound, "no such sandbox");
    std::vector<UniqueFd> sockets;
    for (size_t i = 0; i < count; ++i)
      sockets.emplace_back(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    co_return sockets;
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
    co_return engine::Capabilities{};
  }

  // The sandbox ends by itself.
  void Exit(const std::string& id, engine::ExitReason reason) {
    instances.erase(id);
    on_exit(id, reason);
  }

  // What a test wants to happen.
  std::optional<Error> create_fails;
  std::optional<Error> dial_fails;
  std::optional<engine::ExitReason> exit_after_create;
  int destroy_failures = 0;
  std::chrono::milliseconds create_takes{0};
  std::chrono::milliseconds destroy_takes{0};
  engine::Usage usage{.memory_used_bytes = 1, .memory_limit_bytes = 2, .disk_total_bytes = 4};

  // What has happened.
  std::map<std::string, engine::Spec> instances;
  std::set<std::string> destroyed;
  engine::Spec last_spec;
  int creates = 0, destroys = 0, dials = 0, measures = 0;
  ExitHandler on_exit;
};

}  // namespace caisson::sandbox

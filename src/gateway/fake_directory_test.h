// A Directory without an engine: its sandboxes are ports of this machine's loopback.
#pragma once

#include <sys/socket.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gateway/directory.h"

namespace caisson::gateway {

class FakeDirectory final : public Directory {
 public:
  sandbox::Route& Add(const std::string& id) {
    sandbox::Route& route = routes_[id];
    route.id = id;
    return route;
  }
  // A paused sandbox that traffic wakes.
  sandbox::Route& AddSleeper(const std::string& id) {
    sandbox::Route& route = sleepers_[id];
    route.id = id;
    return route;
  }
  // The sandbox ends, as far as anybody can see.
  void Kill(const std::string& id) {
    routes_.erase(id);
    auto callbacks = std::exchange(callbacks_[id], {});
    for (auto& [handle, gone] : callbacks) gone();
  }

  const sandbox::Route* FindRoute(std::string_view id) const override {
    auto it = routes_.find(std::string(id));
    return it == routes_.end() ? nullptr : &it->second;
  }
  void ForEachRoute(const std::function<bool(const sandbox::Route&)>& until_true) const override {
    for (const auto& [id, route] : routes_)
      if (!route.access_token.empty() && until_true(route)) return;
    for (const auto& [id, route] : sleepers_)
      if (!route.access_token.empty() && until_true(route)) return;
  }
  const sandbox::Route* FindSleeper(std::string_view id) const override {
    auto it = sleepers_.find(std::string(id));
    return it == sleepers_.end() ? nullptr : &it->second;
  }
  Task<Status> Wake(std::string id) override {
    ++wakes;
    co_await SleepFor(std::chrono::milliseconds(1));
    if (wake_fails) co_return tl::unexpected(*wake_fails);
    if (auto sleeper = sleepers_.extract(id); !sleeper.empty()) routes_.insert(std::move(sleeper));
    co_return Status();
  }
  Task<Result<UniqueFd>> Dial(std::string id) override {
    ++dials;
    if (!routes_.contains(id)) co_return Fail(Code::kNotFound, "no such sandbox");
    UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) co_return FailErrno("making a socket");
    co_return socket;
  }
  uint64_t SubscribeGone(const std::string& id, std::function<void()> gone) override {
    callbacks_[id][++last_handle_] = std::move(gone);
    return last_handle_;
  }
  void UnsubscribeGone(const std::string& id, uint64_t handle) override {
    callbacks_[id].erase(handle);
  }
  bool StandsStill(const std::string& id) const override { return still.contains(id); }
  void ReportUnresponsive(const std::string& id, std::string reason) override {
    reports.emplace_back(id, std::move(reason));
  }
  size_t subscriptions(const std::string& id) { return callbacks_[id].size(); }

  int dials = 0, wakes = 0;
  std::optional<Error> wake_fails;
  std::vector<std::pair<std::string, std::string>> reports;
  std::set<std::string> still;

 private:
  std::map<std::string, sandbox::Route> routes_, sleepers_;
  std::map<std::string, std::map<uint64_t, std::function<void()>>> callbacks_;
  uint64_t last_handle_ = 0;
};

}  // namespace caisson::gateway

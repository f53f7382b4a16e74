// What the gateway needs to know of sandboxes, and no more, so that it can be tested without any.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/async.h"
#include "base/fd.h"
#include "sandbox/manager.h"

namespace caisson::gateway {

// The meaning of each call is that of the same name in sandbox::Manager.
class Directory {
 public:
  virtual ~Directory() = default;
  virtual const sandbox::Route* FindRoute(std::string_view id) const = 0;
  virtual void ForEachRoute(const std::function<bool(const sandbox::Route&)>& until_true) const = 0;
  virtual const sandbox::Route* FindSleeper(std::string_view id) const = 0;
  virtual Task<Status> Wake(std::string id) = 0;
  virtual Task<Result<UniqueFd>> Dial(std::string id) = 0;
  virtual uint64_t SubscribeGone(const std::string& id, std::function<void()> gone) = 0;
  virtual void UnsubscribeGone(const std::string& id, uint64_t handle) = 0;
  virtual void ReportUnresponsive(const std::string& id, std::string reason) = 0;
  // It is being paused, copied or changed: that its envd is silent means nothing.
  virtual bool StandsStill(const std::string& id) const = 0;
};

// The sandboxes of this server.
class ManagerDirectory final : public Directory {
 public:
  explicit ManagerDirectory(sandbox::Manager& manager) : manager_(manager) {}

  const sandbox::Route* FindRoute(std::string_view id) const override {
    return manager_.FindRoute(id);
  }
  void ForEachRoute(const std::function<bool(const sandbox::Route&)>& until_true) const override {
    manager_.ForEachRoute(until_true);
  }
  const sandbox::Route* FindSleeper(std::string_view id) const override {
    return manager_.FindSleeper(id);
  }
  Task<Status> Wake(std::string id) override { return manager_.Wake(std::move(id)); }
  Task<Result<UniqueFd>> Dial(std::string id) override { return manager_.Dial(std::move(id)); }
  uint64_t SubscribeGone(const std::string& id, std::function<void()> gone) override {
    return manager_.SubscribeGone(id, std::move(gone));
  }
  void UnsubscribeGone(const std::string& id, uint64_t handle) override {
    manager_.UnsubscribeGone(id, handle);
  }
  void ReportUnresponsive(const std::string& id, std::string reason) override {
    manager_.ReportUnresponsive(id, std::move(reason));
  }
  bool StandsStill(const std::string& id) const override { return manager_.StandsStill(id); }

 private:
  sandbox::Manager& manager_;
};

}  // namespace caisson::gateway

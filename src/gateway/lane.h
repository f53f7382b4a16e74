// Everything the gateway holds of one sandbox: its requests in flight and its idle connections.
#pragma once

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <string>

#include "gateway/directory.h"
#include "http/client.h"

namespace caisson::gateway {

class Flow;
using Clock = std::chrono::steady_clock;

// Why a flow is ended from outside.
enum class Cut { kNone, kSandboxGone, kUnresponsive };

class Lane {
 public:
  // Idle connections are kept for `max_idle_time`, and at most `max_idle` of them.
  Lane(Directory& directory, std::string id, size_t max_idle,
       std::chrono::milliseconds max_idle_time)
      : directory_(directory),
        id_(std::move(id)),
        max_idle_(max_idle),
        max_idle_time_(max_idle_time) {}
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Follows the sandbox's life: when it ends, every flow is cut, every connection closed, and then
  // `ended` is called.
  void Follow(std::function<void()> ended);
  bool gone() const { return gone_; }
  const std::string& id() const { return id_; }

  // An idle connection to `port` that still looks alive, or null.
  std::unique_ptr<http::ClientConnection> TakeIdle(uint16_t port);
  void PutIdle(uint16_t port, std::unique_ptr<http::ClientConnection> connection);
  void CloseIdle();
  // Closes what has been idle for too long. True if the lane holds nothing any more.
  bool Expire(Clock::time_point now);

  std::list<Flow*>::iterator Enter(Flow* flow) { return flows_.insert(flows_.end(), flow); }
  void Leave(std::list<Flow*>::iterator place) { flows_.erase(place); }
  const std::list<Flow*>& flows() const { return flows_; }

  // A question to envd is under way because it has been silent.
  bool probing = false;

 private:
  struct Idle {
    uint16_t port;
    std::unique_ptr<http::ClientConnection> connection;
    Clock::time_point since;
  };

  Directory& directory_;
  std::string id_;
  size_t max_idle_;
  std::chrono::milliseconds max_idle_time_;
  std::optional<uint64_t> subscription_;
  bool gone_ = false;
  std::list<Flow*> flows_;
  std::deque<Idle> idle_;  // oldest first
};

}  // namespace caisson::gateway

#include "gateway/lane.h"

#include <sys/socket.h>

#include "gateway/flow.h"

namespace caisson::gateway {
namespace {

// An idle connection has nothing to say: anything readable is its end. One with TLS has (session
// tickets), so it is never used twice.
bool LooksAlive(http::ClientConnection& connection) {
  char byte;
  int fd = connection.stream().PlainSocket();
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

}  // namespace

Lane::~Lane() {
  if (subscription_ && !gone_) directory_.UnsubscribeGone(id_, *subscription_);
}

void Lane::Follow(std::function<void()> ended) {
  subscription_ = directory_.SubscribeGone(id_, [this, ended = std::move(ended)] {
    gone_ = true;
    for (Flow* flow : flows_) flow->End(Cut::kSandboxGone);
    CloseIdle();
    ended();
  });
}

std::unique_ptr<http::ClientConnection> Lane::TakeIdle(uint16_t port) {
  // The newest is the least likely to be closed by the other side soon.
  for (auto it = idle_.end(); it != idle_.begin();) {
    --it;
    if (it->port != port) continue;
    auto connection = std::move(it->connection);
    it = idle_.erase(it);
    if (LooksAlive(*connection)) return connection;
  }
  return nullptr;
}

void Lane::PutIdle(uint16_t port, std::unique_ptr<http::ClientConnection> connection) {
  if (gone_ || max_idle_ == 0) return;
  if (idle_.size() >= max_idle_) idle_.pop_front();
  idle_.push_back({port, std::move(connection), Clock::now()});
}

void Lane::CloseIdle() { idle_.clear(); }

bool Lane::Expire(Clock::time_point now) {
  while (!idle_.empty() && now - idle_.front().since > max_idle_time_) idle_.pop_front();
  return idle_.empty() && flows_.empty() && !probing;
}

}  // namespace caisson::gateway

#include "engine/event_loop.h"

#include <sys/epoll.h>

namespace caisson::engine {

Result<std::unique_ptr<EventLoop>> EventLoop::Create() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return FailErrno("making an event loop");
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll)));
}

Status EventLoop::Watch(int fd, uint32_t events, std::function<void()> ready) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  int operation = watched_.contains(fd) ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (epoll_ctl(epoll_.get(), operation, fd, &event)) return FailErrno("watching a descriptor");
  watched_[fd] = std::make_shared<std::function<void()>>(std::move(ready));
  return {};
}

void EventLoop::Unwatch(int fd) {
  if (watched_.erase(fd)) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::RunOnce(std::chrono::steady_clock::time_point deadline) {
  auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  auto timeout = std::clamp<int64_t>(left.count(), 0, 60'000);
  // One event at a time: a callback may close a descriptor whose number is then used again, and a
  // second event of the same batch would reach the wrong one.
  epoll_event event;
  if (epoll_wait(epoll_.get(), &event, 1, static_cast<int>(timeout)) != 1) return;
  auto it = watched_.find(event.data.fd);
  if (it == watched_.end()) return;
  auto ready = it->second;
  (*ready)();
}

}  // namespace caisson::engine

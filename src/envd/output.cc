#include "envd/output.h"

#include <algorithm>

namespace caisson::envd {

Subscriber::Subscriber(std::shared_ptr<OutputHub> hub, asio::any_io_executor executor)
    : hub_(std::move(hub)), wake_(std::move(executor)) {
  hub_->subscribers_.push_back(this);
}

Subscriber::~Subscriber() {
  hub_->subscribers_.remove(this);
  hub_->Wake();
}

Task<Event> Subscriber::Next(std::chrono::steady_clock::time_point until) {
  while (queue_.empty()) {
    if (std::chrono::steady_clock::now() >= until) co_return nullptr;
    wake_.expires_at(until);
    co_await wake_.async_wait(kAwait);
  }
  Event event = std::move(queue_.front());
  queue_.pop_front();
  bool was_full = bytes_ >= hub_->buffer_;
  bytes_ -= event->size();
  if (was_full && bytes_ < hub_->buffer_) hub_->Wake();
  co_return event;
}

std::unique_ptr<Subscriber> OutputHub::Subscribe() {
  return std::make_unique<Subscriber>(shared_from_this(), executor_);
}

void OutputHub::Publish(const Event& event) {
  for (Subscriber* subscriber : subscribers_) {
    subscriber->queue_.push_back(event);
    subscriber->bytes_ += event->size();
    subscriber->wake_.cancel();
  }
}

bool OutputHub::HasRoom() const {
  return std::ranges::all_of(subscribers_,
                             [this](const Subscriber* s) { return s->bytes_ < buffer_; });
}

Task<void> OutputHub::WaitForRoom(std::chrono::steady_clock::time_point until) {
  co_await room_.Wait(until);
}

}  // namespace caisson::envd

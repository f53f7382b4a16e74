// The deadlines of one stream. Moving a deadline is only a store: the timer is armed once and looks
// again when it fires, so a request costs no timer operation.
#pragma once

#include <chrono>
#include <memory>

#include "http/stream.h"

namespace caisson::http {

class Watchdog {
 public:
  // `stream` must live as long as this.
  explicit Watchdog(Stream& stream);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  struct State;

 public:
  // While a Scope lives, its rule holds. Scopes of one stream may overlap (reading and writing at
  // the same time); then the rule of the first holds until the last ends.
  class [[nodiscard]] Scope {
   public:
    explicit Scope(std::shared_ptr<State> state) : state_(std::move(state)) {}
    Scope(Scope&&) = default;
    Scope& operator=(Scope&&) = delete;
    ~Scope();

   private:
    std::shared_ptr<State> state_;
  };

  // The scope must end within `timeout`.
  Scope Limit(std::chrono::milliseconds timeout);
  // Some byte must move, in either direction, in each `timeout`.
  Scope Stall(std::chrono::milliseconds timeout);
  // True once a rule was broken. The stream's pending operations were canceled then.
  bool expired() const;

 private:
  Scope Enter(std::chrono::milliseconds timeout, bool by_progress);
  std::shared_ptr<State> state_;
};

}  // namespace caisson::http

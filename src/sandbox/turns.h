// One change of state at a time per sandbox: pausing, resuming, taking a snapshot. Others wait for
// their turn.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/async.h"
#include "engine/engine.h"

namespace caisson::sandbox {

class Turns {
  struct State;

 public:
  static constexpr int kMaxWaiting = 256;  // per sandbox

  Turns(asio::any_io_executor executor, std::chrono::milliseconds patience);

  // As long as one lives, nobody else has a turn for the same sandbox.
  class Turn {
   public:
    Turn(Turn&&) noexcept = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn();
    // The sandbox was ended meanwhile: what was begun must not show.
    bool killed() const;
    // Its envd ended meanwhile.
    std::optional<engine::ExitReason> exited() const;

   private:
    friend class Turns;
    Turn(Turns& turns, std::string id, std::shared_ptr<State> state)
        : turns_(turns), id_(std::move(id)), state_(std::move(state)) {}
    Turns& turns_;
    std::string id_;
    std::shared_ptr<State> state_;
  };

  // `doing` is for the text that others get: "is being paused". kAborted if the turn before does
  // not end in time, kResourceExhausted if too many wait.
  Task<Result<Turn>> Take(std::string id, std::string doing);
  // Returns when nobody has a turn, or when the patience is over.
  Task<void> AwaitFree(std::string id);

  // What is being done to it now; "" if nothing.
  std::string Doing(const std::string& id) const;
  // Tells the one who has the turn, if there is one.
  void MarkKilled(const std::string& id);
  bool MarkExited(const std::string& id, engine::ExitReason reason);

 private:
  struct State {
    std::string doing;
    int waiting = 0;
    bool killed = false;
    std::optional<engine::ExitReason> exited;
  };
  Task<bool> Wait(std::string id);

  const std::chrono::milliseconds patience_;
  std::map<std::string, std::shared_ptr<State>> states_;
  Condition changed_;  // of any sandbox
};

}  // namespace caisson::sandbox

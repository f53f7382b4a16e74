// For tests only: a place where the server dies, to prove that the next one goes on.
#pragma once

#include <string>
#include <string_view>

namespace caisson::flow {

// CAISSON_FLOW_CRASH_AT="step:point" in the environment: the process kills itself with SIGKILL when
// that step comes to that point. Points: "before_claim" (the step before it is committed, this one
// is not taken), "after_claim" (taken, not begun), "after_effect" (its work is done, its result is
// not written), "after_commit" (the result is written, nobody was told).
class CrashPoint {
 public:
  CrashPoint();  // from the environment
  bool set() const { return !step_.empty(); }
  void Reached(std::string_view step, std::string_view point) const;

 private:
  std::string step_, point_;
};

}  // namespace caisson::flow

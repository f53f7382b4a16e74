// The routes of /api/v1 for runs: what a task's work is made of, step by step.
#pragma once

#include "api/frame.h"
#include "flow/engine.h"

namespace caisson::api {

class RunRoutes {
 public:
  // Both outlive it.
  RunRoutes(store::Store& store, flow::Engine& flow) : store_(store), flow_(flow) {}

  // It outlives the frame.
  void Add(Frame& frame);

 private:
  using Method = Answer (RunRoutes::*)(Call&);

  Handler Bind(Method method);
  Answer List(Call& call);
  Answer Get(Call& call);
  Answer Retry(Call& call);
  Answer Cancel(Call& call);
  Answer Signal(Call& call);
  // Does `change` to the caller's run and answers with what it is then.
  Answer Change(Call& call,
                std::function<Status(store::Transaction&, const store::RunRow&)> change);

  store::Store& store_;
  flow::Engine& flow_;
};

}  // namespace caisson::api

// A first look at the platform: an agent that needs no key and no network, and a task for it.
#pragma once

#include "work/agents.h"
#include "work/tasks.h"

namespace caisson::work {

struct Demonstration {
  std::string task_id, agent_id;
  bool already = false;  // one is under way: it is the answer
};

class Demo {
 public:
  // Both outlive it.
  Demo(Agents& agents, Tasks& tasks) : agents_(agents), tasks_(tasks) {}

  // The user's agent "demo", made once, starts on a new task with the id `task_id` ("" = a random
  // one). It has no repository.
  Task<Result<Demonstration>> Start(std::string owner_id, std::string task_id);

 private:
  Agents& agents_;
  Tasks& tasks_;
};

}  // namespace caisson::work

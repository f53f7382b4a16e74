// The work platform's rules in one place, for those who serve them.
#pragma once

#include "work/agents.h"
#include "work/approvals.h"
#include "work/costs.h"
#include "work/demo.h"
#include "work/executions.h"
#include "work/offered_models.h"
#include "work/outside_agents.h"
#include "work/shares.h"
#include "work/squads.h"
#include "work/start_limit.h"
#include "work/start_queue.h"
#include "work/tasks.h"

namespace caisson::work {

struct Work {
  Work(asio::any_io_executor executor, Platform platform)
      : starts(platform.config),
        models(executor, platform.config),
        agents(platform, models),
        squads(platform),
        tasks(platform, starts),
        demo(agents, tasks),
        executions(platform),
        shares(platform),
        approvals(platform),
        costs(platform),
        start_queue(executor, platform),
        outside_agents(executor, platform) {}

  StartLimit starts;
  OfferedModels models;
  Agents agents;
  Squads squads;
  Tasks tasks;
  Demo demo;
  Executions executions;
  Shares shares;
  Approvals approvals;
  Costs costs;
  StartQueue start_queue;
  OutsideAgents outside_agents;
};

}  // namespace caisson::work

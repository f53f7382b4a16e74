// /api/v1/usage: how much of everything the caller has and uses now.
#pragma once

#include "account/accounts.h"
#include "api/frame.h"
#include "sandbox/manager.h"
#include "work/work.h"

namespace caisson::api {

struct UsageSources {
  store::Store& store;
  account::Accounts& accounts;
  sandbox::Manager& manager;
  work::Costs& costs;
  const Config& config;
};

// All outlive the frame.
void AddUsageRoutes(Frame& frame, UsageSources sources);

}  // namespace caisson::api

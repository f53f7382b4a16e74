// Links to tasks: their owner makes and revokes them, anybody who has one may look.
#pragma once

#include "account/failure_limit.h"
#include "api/frame.h"
#include "events/log.h"
#include "work/changes.h"
#include "work/work.h"

namespace caisson::api {

class ShareRoutes {
 public:
  // All outlive it.
  ShareRoutes(work::Work& work, work::Changes& changes, events::Log& log, const Config& config)
      : work_(work), changes_(changes), log_(log), requests_(config.share_rate_per_minute) {}

  // Refers to this object.
  void Add(Frame& frame);

 private:
  using Shown = Task<Result<json::object>> (ShareRoutes::*)(Call&, work::SharedTask);

  void AddOwners(Frame& frame);
  void AddAnybodys(Frame& frame);

  // Opens the link, and hides in what is shown what only its owner may know. An address that asks
  // too often is refused.
  Answer Show(Call& call, Shown show);
  Task<Result<json::object>> ShowTask(Call& call, work::SharedTask shared);
  Task<Result<json::object>> ShowEvents(Call& call, work::SharedTask shared);
  Task<Result<json::object>> ShowChanges(Call& call, work::SharedTask shared);

  work::Work& work_;
  work::Changes& changes_;
  events::Log& log_;
  account::FailureLimit requests_;  // by address
};

}  // namespace caisson::api

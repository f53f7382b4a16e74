// Whose build begins when. Work slows down, it never halts: beyond the daily limit a build is
// scheduled for a later day, beyond what may run at once it waits for its turn.
#pragma once

#include <map>
#include <string>

#include "build/tiers.h"
#include "flow/engine.h"
#include "store/build_rows.h"
#include "store/transaction.h"

namespace caisson::build {

// What a user has used today.
struct BuildUsage {
  std::string tier;
  int64_t used = 0;
  int64_t limit = 0;  // per day; 0 = unlimited
  Time resets_at;
};

// Its functions are called inside transactions, on the store's thread.
class BuildQueue {
 public:
  // All outlive it.
  BuildQueue(const Config& config, flow::Engine& flow, std::map<std::string, Tier> tiers);

  // By the user's row, else the setting.
  Result<Tier> TierOf(store::Transaction& tx, const std::string& owner_id) const;
  // Decides whether a new row is queued or scheduled, and inserts it. kResourceExhausted: too many
  // wait already; the message says when to come again.
  Status Enter(store::Transaction& tx, store::BuildRow& row) const;
  // Starts the runs of those whose turn it is, and queues those whose day has come. Wakes nobody.
  Status Advance(store::Transaction& tx) const;

  Result<BuildUsage> UsageOf(store::Transaction& tx, const std::string& owner_id) const;
  struct Turn {
    int64_t position = 0;  // 1 = the next; 0 = it does not wait
    int64_t wait_s = 0;    // about
  };
  Result<Turn> TurnOf(store::Transaction& tx, const store::BuildRow& row) const;

 private:
  Tier Find(const std::string& name) const;
  Result<int64_t> UsedOn(store::Transaction& tx, const std::string& owner_id, Time day) const;
  Result<std::vector<store::BuildRow>> Waiting(store::Transaction& tx) const;
  Result<bool> HasRoom(store::Transaction& tx, const store::BuildRow& row) const;
  Status Start(store::Transaction& tx, store::BuildRow& row) const;

  const Config& config_;
  flow::Engine& flow_;
  const std::map<std::string, Tier> tiers_;
};

}  // namespace caisson::build

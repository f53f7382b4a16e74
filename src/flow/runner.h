// Runs steps: takes what is due, keeps its leases, writes what comes out. Lives on one loop.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <memory>
#include <mutex>
#include <set>

#include "flow/ledger.h"

namespace caisson::flow {

class Runner : public std::enable_shared_from_this<Runner> {
 public:
  Runner(asio::any_io_executor executor, store::Store& store, const Config& config);

  Ledger& ledger() { return ledger_; }
  void Define(Definition definition);
  Task<Status> Start();
  Task<void> Stop();
  // Ends everything without writing anything more.
  void Abandon();
  // On any thread: a run was asked to stop, look whether one of ours is meant.
  void ExpectCancel(const std::string& run_id);
  void Wake();
  Engine::Numbers numbers() const;

 private:
  using Steady = std::chrono::steady_clock;
  using Self = std::shared_ptr<Runner>;
  enum class Why { kNone, kCanceled, kStopped, kLost, kTooSlow };

  // A step that runs here.
  struct Running {
    std::string run_id;
    int64_t fence = 0;
    bool always = false;
    Why why = Why::kNone;  // why it was canceled
    asio::cancellation_signal signal;
  };
  struct Committed {
    Verdict verdict = Verdict::kLate;
    std::vector<Work> next;
  };

  // These take `self` so that it lives as long as they do.
  static Task<void> Take(Self self);
  static Task<void> KeepLeases(Self self);
  static Task<void> Lane(Self self, Work work);

  Task<size_t> ClaimSome();
  // Runs that were not begun in time (flow_queue_ttl_s). How many there were.
  Task<size_t> GiveUp();
  Task<void> FindCanceled();
  Task<Status> Beat();
  // Now and then: runs that ended long ago (run_retention_days).
  Task<void> Forget();
  Task<Result<Outcome>> RunStep(const Work& work, std::shared_ptr<Running> running);
  // Writes the outcome, and takes the next step in the same transaction.
  Task<std::optional<Work>> Commit(const Work& work, const Running& running,
                                   Result<Outcome> outcome);
  Task<Result<Committed>> Write(const Work& work, Outcome outcome);
  void Count(Verdict verdict);
  void CancelStep(std::shared_ptr<Running> running, Why why);
  size_t FreeLanes() const;
  std::chrono::milliseconds lease() const;
  bool LeasesAreOld() const { return Steady::now() - beat_at_ > lease() * 2 / 3; }

  asio::any_io_executor executor_;
  store::Store& store_;
  const Config config_;
  std::map<std::string, Definition> definitions_;
  Ledger ledger_;
  CrashPoint crash_;
  TaskGroup loops_, lanes_;
  Condition wake_, ending_;
  bool woken_ = false, stopping_ = false, abandoned_ = false;
  Steady::time_point beat_at_, forget_at_;
  std::map<std::string, std::shared_ptr<Running>> running_;  // by the step's id
  Engine::Numbers numbers_;

  std::mutex mutex_;
  std::set<std::string> expected_cancels_;  // ids of runs; guarded by mutex_
};

}  // namespace caisson::flow

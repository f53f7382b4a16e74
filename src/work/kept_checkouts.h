// Checkouts that are kept, so that the next task of the same user in the same repository only
// fetches. What is kept is a copy of the files of the task's sandbox, taken when the repository was
// cloned and before any agent came: there is nobody's work and nobody's secret in it.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/async.h"
#include "store/checkout_rows.h"
#include "work/platform.h"

namespace caisson::work {

using KeptCheckout = store::KeptCheckoutRow;

// Who has the copies.
struct CheckoutShelf {
  struct Copy {
    std::string snapshot;  // the template name that a sandbox of the same owner is made from
    int64_t bytes = 0;
  };
  // Of the files of a running sandbox, under a name by which it is found if the answer is lost.
  std::function<Task<Result<Copy>>(std::string owner_id, std::string sandbox_id, std::string name)>
      save;
  // By its id or its name; gone already is fine.
  std::function<Task<Status>(std::string owner_id, std::string name)> remove;
};

// What a checkout is kept for.
struct CheckoutKey {
  std::string owner_id;
  std::string repository;
  std::string template_name;
  int64_t depth = 0;
};

class KeptCheckouts {
 public:
  using Clock = std::function<Time()>;

  // `installation`: a text that no other server has. All outlive it.
  KeptCheckouts(asio::any_io_executor executor, Platform platform, std::string installation,
                CheckoutShelf shelf, Clock clock = Now);

  // Clears away what a server before this one left unfinished, then evicts regularly.
  Task<void> Start();
  Task<void> Stop();

  // "" if checkouts are kept, else why they are not.
  std::string WhyOff() const;

  // What to make a sandbox from, if there is something.
  Task<std::optional<KeptCheckout>> Find(CheckoutKey key);
  // A sandbox was made from it.
  Task<void> Used(KeptCheckout kept);
  // No sandbox could be made from it. One that is to blame is forgotten; true: it may go well
  // without it.
  Task<bool> Failed(KeptCheckout kept, Error error);
  // Keeps what is checked out in this sandbox, unless there is one that is not old. That it could
  // not be kept concerns nobody.
  Task<void> Keep(CheckoutKey key, std::string sandbox_id);

  // `owner_id` "" = of everybody (an administrator); someone else's is kNotFound.
  Task<Result<Listed<KeptCheckout>>> List(std::string owner_id, Page page);
  Task<Status> Remove(std::string owner_id, std::string id);

  // Deletes the copies that are not worth their room.
  Task<Status> Sweep();

  // Sandboxes that could be, and that could not be made from a kept checkout.
  struct Numbers {
    uint64_t hits = 0, misses = 0;
  };
  Numbers numbers() const { return numbers_; }

 private:
  // As long as it lives, others leave this to whoever has it.
  class Making {
   public:
    Making(std::set<std::string>& all, std::string what) : all_(all), what_(std::move(what)) {
      all_.insert(what_);
    }
    ~Making() { all_.erase(what_); }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;

   private:
    std::set<std::string>& all_;
    std::string what_;
  };

  Task<Result<std::optional<KeptCheckout>>> LookUp(CheckoutKey key);
  Task<Result<std::vector<KeptCheckout>>> Rows(std::string state);
  // False: there is one already.
  Task<Result<bool>> KeepNow(CheckoutKey key, std::string sandbox_id);
  // It takes the place of `old`, if there is such a one.
  Task<Status> SetReady(KeptCheckout row, CheckoutShelf::Copy copy, std::string old);
  // The least used ones go until one more has room.
  Task<Status> MakeRoom();
  // From now on nobody is given it, and its copy is deleted.
  Task<void> Evict(KeptCheckout kept);
  // Deletes the copy, then the row; what fails is left to the next Sweep().
  Task<void> Clear(KeptCheckout kept);
  Task<void> Care();

  Platform platform_;
  const std::string installation_;
  const CheckoutShelf shelf_;
  const Clock clock_;
  TaskGroup tasks_, operations_;
  std::set<std::string> making_;  // rows and sandboxes by their ids, and what they are for
  Numbers numbers_;
};

}  // namespace caisson::work

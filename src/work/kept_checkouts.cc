#include "work/kept_checkouts.h"

#include <algorithm>

#include "base/id.h"
#include "base/log.h"
#include "sandbox/shield.h"
#include "work/checkout_eviction.h"
#include "work/paging.h"

namespace caisson::work {
namespace {

using store::Assign;
using store::Select;
using store::Transaction;

constexpr std::chrono::milliseconds kInterval{50};

// What the copy is called until its id is known.
std::string NameOf(const KeptCheckout& kept) { return "checkout-" + kept.id; }

std::string TextOf(const CheckoutKey& key) {
  return fmt::format("{}\n{}\n{}\n{}", key.owner_id, key.repository, key.template_name, key.depth);
}

// Failures that say nothing of the copy: the next sandbox may well be made from it.
bool IsOfTheMoment(Code code) {
  return code == Code::kUnavailable || code == Code::kResourceExhausted ||
         code == Code::kDeadlineExceeded || code == Code::kCanceled || code == Code::kAborted;
}

void Complain(const char* what, const KeptCheckout& kept, const Error& error) {
  LogWarn(what,
          {{"checkout", kept.id}, {"repository", kept.repository}, {"error", error.message()}});
}

}  // namespace

KeptCheckouts::KeptCheckouts(asio::any_io_executor executor, Platform platform,
                             std::string installation, CheckoutShelf shelf, Clock clock)
    : platform_(platform),
      installation_(std::move(installation)),
      shelf_(std::move(shelf)),
      clock_(std::move(clock)),
      tasks_(executor),
      operations_(executor) {}

Task<void> KeptCheckouts::Start() {
  if (platform_.config.checkout_cache_max > 0 && !WhyOff().empty())
    LogWarn("checkouts are not kept", {{"reason", WhyOff()}});
  if (Status swept = co_await Sweep(); !swept)
    LogWarn("kept checkouts could not be looked through", {{"error", swept.error().message()}});
  if (WhyOff().empty()) tasks_.Spawn("kept checkouts", Care());
}

Task<void> KeptCheckouts::Stop() {
  co_await tasks_.Stop();
  co_await operations_.Stop(std::chrono::milliseconds(platform_.config.shutdown_grace_ms));
}

std::string KeptCheckouts::WhyOff() const {
  if (platform_.config.checkout_cache_max <= 0) return "checkout_cache_max is 0";
  if (platform_.config.provider != "local")
    return fmt::format("the provider {} cannot keep checkouts, only local can",
                       platform_.config.provider);
  return "";
}

// ---- using
// ---------------------------------------------------------------------------------------

Task<Result<std::optional<KeptCheckout>>> KeptCheckouts::LookUp(CheckoutKey key) {
  co_return co_await platform_.store.Read([this, key](Transaction& read) {
    return read.First(Select<KeptCheckout>()
                          .Eq(&KeptCheckout::installation, installation_)
                          .Eq(&KeptCheckout::owner_id, key.owner_id)
                          .Eq(&KeptCheckout::repository, key.repository)
                          .Eq(&KeptCheckout::template_name, key.template_name)
                          .Eq(&KeptCheckout::depth, key.depth)
                          .Eq(&KeptCheckout::state, "ready"));
  });
}

Task<std::optional<KeptCheckout>> KeptCheckouts::Find(CheckoutKey key) {
  if (!WhyOff().empty()) co_return std::nullopt;
  auto found = co_await LookUp(std::move(key));
  if (found && *found) co_return std::move(*found);
  if (!found) LogWarn("kept checkouts cannot be looked up", {{"error", found.error().message()}});
  ++numbers_.misses;
  co_return std::nullopt;
}

Task<void> KeptCheckouts::Used(KeptCheckout kept) {
  ++numbers_.hits;
  auto written =
      co_await platform_.store.Write([id = kept.id, now = clock_()](Transaction& write) -> Status {
        TRY_ASSIGN(auto row, write.Get<KeptCheckout>(id));
        if (!row) return {};
        auto gap = std::chrono::duration_cast<std::chrono::seconds>(now - row->last_used_at);
        row->gap_s = std::max<int64_t>(gap.count(), 0);
        row->last_used_at = now;
        ++row->uses;
        return write.Update(*row);
      });
  if (!written) Complain("the use of a kept checkout was not counted", kept, written.error());
}

Task<bool> KeptCheckouts::Failed(KeptCheckout kept, Error error) {
  if (error.code() == Code::kResourceExhausted) co_return false;
  ++numbers_.misses;
  Complain("no sandbox could be made from a kept checkout", kept, error);
  if (!IsOfTheMoment(error.code())) co_await Evict(std::move(kept));
  co_return true;
}

// ---- keeping
// -------------------------------------------------------------------------------------

Task<void> KeptCheckouts::Keep(CheckoutKey key, std::string sandbox_id) {
  if (!WhyOff().empty()) co_return;
  // SECURITY: the caller goes on to the agent, which must not come before the copy is made.
  while (making_.contains(sandbox_id)) co_await SleepFor(kInterval);
  // A copy whose making nobody waits for any more must come to its end all the same.
  auto kept = co_await sandbox::Shield(operations_, "keep a checkout",
                                       KeepNow(std::move(key), std::move(sandbox_id)));
  if (!kept) LogInfo("a checkout was not kept", {{"error", kept.error().message()}});
}

Task<Result<bool>> KeptCheckouts::KeepNow(CheckoutKey key, std::string sandbox_id) {
  std::string what = TextOf(key);
  if (making_.contains(what)) co_return false;
  Making one(making_, what), here(making_, sandbox_id);
  CO_TRY_ASSIGN(auto old, co_await LookUp(key));
  auto age = std::chrono::seconds(platform_.config.checkout_cache_busy_s);
  if (old && clock_() - old->made_at < age) co_return false;
  if (!old) CO_TRY(co_await MakeRoom());
  KeptCheckout row{.id = RandomId("c", 20),
                   .installation = installation_,
                   .owner_id = key.owner_id,
                   .repository = key.repository,
                   .template_name = key.template_name,
                   .depth = key.depth,
                   .made_at = clock_(),
                   .last_used_at = clock_()};
  Making busy(making_, row.id);
  CO_TRY(co_await platform_.store.Write([row](Transaction& write) { return write.Insert(row); }));
  auto copy = co_await shelf_.save(key.owner_id, std::move(sandbox_id), NameOf(row));
  Status written = copy ? co_await SetReady(row, *copy, old ? old->id : "")
                        : Status(tl::unexpect, std::move(copy).error());
  if (!written) co_await Clear(std::move(row));
  // It is old, or as many copies deep as may be: without it the next task clones afresh.
  if (old) co_await Evict(std::move(*old));
  if (!written) co_return tl::unexpected(std::move(written).error());
  co_return true;
}

Task<Status> KeptCheckouts::SetReady(KeptCheckout row, CheckoutShelf::Copy copy, std::string old) {
  row.state = "ready";
  row.snapshot = std::move(copy.snapshot);
  row.bytes = copy.bytes;
  co_return co_await platform_.store.Write([row, old](Transaction& write) -> Status {
    KeptCheckout ready = row;
    TRY_ASSIGN(auto before, write.Get<KeptCheckout>(old));
    if (before) {
      ready.uses = before->uses;
      ready.gap_s = before->gap_s;
      ready.last_used_at = before->last_used_at;
      before->state = "doomed";
      TRY(write.Update(*before));
    }
    return write.Update(ready);
  });
}

Task<Status> KeptCheckouts::MakeRoom() {
  CO_TRY_ASSIGN(auto rows, co_await Rows("ready"));
  SortByUse(rows);
  while (static_cast<int64_t>(rows.size()) >= platform_.config.checkout_cache_max) {
    co_await Evict(std::move(rows.back()));
    rows.pop_back();
  }
  co_return Status();
}

// ---- clearing away
// -------------------------------------------------------------------------------

Task<Result<std::vector<KeptCheckout>>> KeptCheckouts::Rows(std::string state) {
  co_return co_await platform_.store.Read([this, state](Transaction& read) {
    return read.List(Select<KeptCheckout>()
                         .Eq(&KeptCheckout::installation, installation_)
                         .Eq(&KeptCheckout::state, state));
  });
}

Task<void> KeptCheckouts::Evict(KeptCheckout kept) {
  auto doomed = co_await platform_.store.Write([id = kept.id](Transaction& write) {
    return write.Set(Select<KeptCheckout>().Eq(&KeptCheckout::id, id),
                     {Assign(&KeptCheckout::state, "doomed")});
  });
  if (!doomed) {
    Complain("a kept checkout could not be given up", kept, doomed.error());
    co_return;
  }
  co_await Clear(std::move(kept));
}

Task<void> KeptCheckouts::Clear(KeptCheckout kept) {
  // The row goes last: as long as there is a copy, somebody knows it.
  Status cleared =
      co_await shelf_.remove(kept.owner_id, kept.snapshot.empty() ? NameOf(kept) : kept.snapshot);
  if (cleared) {
    auto deleted = co_await platform_.store.Write([id = kept.id](Transaction& write) {
      return write.Delete(Select<KeptCheckout>().Eq(&KeptCheckout::id, id));
    });
    if (!deleted) cleared = tl::unexpected(std::move(deleted).error());
  }
  if (!cleared)
    Complain("a kept checkout could not be deleted; it is tried again", kept, cleared.error());
}

Task<Status> KeptCheckouts::Sweep() {
  for (const char* state : {"making", "doomed"}) {
    CO_TRY_ASSIGN(auto left, co_await Rows(state));
    for (KeptCheckout& row : left)
      if (!making_.contains(row.id)) co_await Clear(std::move(row));
  }
  CO_TRY_ASSIGN(auto rows, co_await Rows("ready"));
  if (WhyOff().empty()) rows = Evicted(platform_.config, std::move(rows), clock_());
  for (KeptCheckout& row : rows) {
    LogInfo("a kept checkout is evicted", {{"repository", row.repository}, {"uses", row.uses}});
    co_await Evict(std::move(row));
  }
  co_return Status();
}

Task<void> KeptCheckouts::Care() {
  for (;;) {
    co_await SleepFor(std::chrono::seconds(platform_.config.checkout_cache_sweep_s));
    if (Status swept = co_await Sweep(); !swept)
      LogWarn("kept checkouts could not be looked through", {{"error", swept.error().message()}});
  }
}

// ---- for their owners
// ----------------------------------------------------------------------------

Task<Result<Listed<KeptCheckout>>> KeptCheckouts::List(std::string owner_id, Page page) {
  co_return co_await platform_.store.Read([=, this](Transaction& read) {
    Select<KeptCheckout> select;
    select.Eq(&KeptCheckout::installation, installation_).Eq(&KeptCheckout::state, "ready");
    if (!owner_id.empty()) select.Eq(&KeptCheckout::owner_id, owner_id);
    select.Order(&KeptCheckout::last_used_at, /*descending=*/true).Order(&KeptCheckout::id);
    return ListPage(read, select, page);
  });
}

Task<Status> KeptCheckouts::Remove(std::string owner_id, std::string id) {
  CO_TRY_ASSIGN(auto row, co_await platform_.store.Read(
                              [id](Transaction& read) { return read.Get<KeptCheckout>(id); }));
  // SECURITY: someone else's looks like one that does not exist.
  if (!row || row->state != "ready" || row->installation != installation_ ||
      (!owner_id.empty() && row->owner_id != owner_id))
    co_return Fail(Code::kNotFound, "there is no kept checkout {}", id);
  co_await Evict(std::move(*row));
  co_return Status();
}

}  // namespace caisson::work

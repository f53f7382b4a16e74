// Forks: a hidden snapshot of a running sandbox, sandboxes made from it, and the snapshot deleted.
#include "base/log.h"
#include "sandbox/manager_impl.h"
#include "sandbox/shield.h"

namespace caisson::sandbox {
namespace {

// What a fork takes over from the sandbox it is a copy of.
CreateOptions OptionsOf(const store::SandboxRow& row, std::chrono::seconds timeout) {
  CreateOptions options;
  options.key_id = row.key_id;
  options.template_name = row.template_id;
  options.timeout = timeout;
  options.metadata = row.metadata;
  options.env = row.env;
  options.secure = row.secure;
  options.allow_internet = row.allow_internet;
  options.network = {.allow_public_traffic = row.allow_public_traffic,
                     .mask_request_host = row.mask_request_host,
                     .as_requested_json = row.network_json};
  options.lifecycle = {.auto_pause = row.auto_pause,
                       .auto_pause_memory = row.auto_pause_memory,
                       .auto_resume = row.auto_resume};
  return options;
}

}  // namespace

Task<Result<std::vector<Result<Info>>>> Manager::Impl::Fork(std::string key_id, std::string id,
                                                            std::chrono::seconds timeout,
                                                            int64_t count) {
  CO_TRY_ASSIGN(auto record, FindOwned(key_id, id));
  if (count < 1 || count > config_.max_forks)
    co_return Fail(Code::kInvalidArgument, "count must be a number from 1 to {}",
                   config_.max_forks);
  for (int64_t limit : {config_.max_sandboxes, limiter_.MaxSandboxes(record->row.key_id)})
    if (limit > 0 && count >= limit)
      co_return Fail(Code::kInvalidArgument,
                     "count must be less than {}, the number of sandboxes that may run at once",
                     limit);
  if (timeout.count() <= 0)
    co_return Fail(Code::kInvalidArgument, "Timeout must be greater than 0");
  CO_TRY(CheckTimeout(record->row.key_id, timeout));
  CO_TRY(CheckOpen());
  if (!record->running && turns_.Doing(id).empty())
    co_return tl::unexpected(NotRunning(id).error());
  co_return co_await Shield(operations_, "fork", ForkNow(std::move(id), timeout, count));
}

Task<Result<std::vector<Result<Info>>>> Manager::Impl::ForkNow(std::string id,
                                                               std::chrono::seconds timeout,
                                                               int64_t count) {
  CO_TRY_ASSIGN(store::SnapshotRow origin,
                co_await CopyRunning(id, "is being forked", /*memory=*/true));
  auto source = registry_.Find(id);
  std::vector<Result<Info>> forks;
  if (source) {
    CreateOptions options = OptionsOf(source->row, timeout);
    std::vector<Shielded<Info>> made;
    for (int64_t i = 0; i < count; ++i)
      made.push_back(StartShielded<Info>(operations_, "fork", CreateNow(options, origin)));
    for (Shielded<Info>& one : made) forks.push_back(co_await AwaitShielded<Info>(std::move(one)));
  }
  if (Status deleted = co_await engine_.DeleteSaved(origin.id); !deleted)
    LogError("the files of a fork's snapshot could not be deleted; the next start tries again",
             {{"snapshot", origin.id}, {"error", deleted.error().message()}});
  if (!source) co_return Fail(Code::kNotFound, "sandbox '{}' was killed meanwhile", id);
  size_t good = std::count_if(forks.begin(), forks.end(), [](const auto& one) { return !!one; });
  std::string names;
  for (const auto& fork : forks)
    if (fork) names += (names.empty() ? "" : " ") + fork->id;
  co_await WriteEvent(MakeEvent(id, "forked", fmt::format("{} of {} forks made", good, count),
                                {{"forks", names}, {"count", std::to_string(count)}},
                                good == forks.size() ? "info" : "error"));
  co_return forks;
}

}  // namespace caisson::sandbox

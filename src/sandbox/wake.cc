// Being resumed by traffic. One resume serves everybody who asks meanwhile.
#include "sandbox/manager_impl.h"
#include "sandbox/shield.h"

namespace caisson::sandbox {

std::shared_ptr<Record> Manager::Impl::FindSleeper(std::string_view id) const {
  auto it = paused_.find(id);
  if (it == paused_.end() || !it->second->row.auto_resume) return nullptr;
  // Its processes are gone: nothing would answer, and a cold boot is not what a request expects.
  return it->second->row.saved_tier == "files" ? nullptr : it->second;
}

Task<Status> Manager::Impl::Wake(std::string id) {
  if (registry_.Find(id)) co_return Status();
  auto record = FindSleeper(id);
  if (!record) co_return Fail(Code::kNotFound, "sandbox '{}' cannot be woken by traffic", id);
  std::chrono::seconds timeout(std::max(record->row.timeout_s, config_.auto_resume_timeout_s));
  ResumeOptions options{.timeout = std::min(timeout, limiter_.LongestTimeout(record->row.key_id))};
  CO_TRY(co_await Shield(operations_, "wake", ResumeNow(std::move(id), options, "traffic")));
  co_return Status();
}

}  // namespace caisson::sandbox

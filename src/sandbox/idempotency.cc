#include "sandbox/idempotency.h"

namespace caisson::sandbox {

Result<std::optional<Info>> Idempotency::Begin(const std::string& key_id, const std::string& key,
                                               const std::string& request_hash) {
  DropOld();
  auto [it, added] = entries_.try_emplace({key_id, key}, Entry{request_hash, std::nullopt, Now()});
  if (added) return std::optional<Info>();
  if (it->second.request_hash != request_hash)
    return Fail(Code::kAlreadyExists,
                "this idempotency key was used for a different request; use a new key");
  if (!it->second.answer)
    return Fail(Code::kAborted, "a request with this idempotency key is still being worked on");
  return it->second.answer;
}

void Idempotency::Finish(const std::string& key_id, const std::string& key, const Info& info) {
  auto it = entries_.find({key_id, key});
  if (it == entries_.end()) return;
  it->second.answer = info;
  finished_.push_back(it->first);
}

void Idempotency::Forget(const std::string& key_id, const std::string& key) {
  entries_.erase({key_id, key});
}

void Idempotency::Restore(const std::string& key, const std::string& request_hash,
                          const Info& info) {
  entries_.insert_or_assign({info.key_id, key}, Entry{request_hash, info, info.started_at});
  finished_.emplace_back(info.key_id, key);
}

void Idempotency::DropOld() {
  Time oldest = Now() - kKept;
  while (!finished_.empty()) {
    auto it = entries_.find(finished_.front());
    if (it != entries_.end() && it->second.at >= oldest && finished_.size() < kMaxEntries) return;
    if (it != entries_.end() && it->second.answer) entries_.erase(it);
    finished_.pop_front();
  }
}

}  // namespace caisson::sandbox

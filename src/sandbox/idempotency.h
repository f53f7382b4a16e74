// Requests that carry an idempotency key: the second one with the same key gets the first one's
// answer instead of a second sandbox.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>

#include "sandbox/manager.h"

namespace caisson::sandbox {

class Idempotency {
 public:
  // Answers are kept for a day, and at most this many of them.
  static constexpr std::chrono::hours kKept{24};
  static constexpr size_t kMaxEntries = 10'000;

  // Nothing: go on, and call Finish() or Forget(). An Info: the answer of the first request.
  // kAborted: the first request is still at work. kAlreadyExists: it was a different request.
  Result<std::optional<Info>> Begin(const std::string& key_id, const std::string& key,
                                    const std::string& request_hash);
  void Finish(const std::string& key_id, const std::string& key, const Info& info);
  // The request failed and left nothing: the same key may try again.
  void Forget(const std::string& key_id, const std::string& key);
  // Puts the answer of an earlier server process back.
  void Restore(const std::string& key, const std::string& request_hash, const Info& info);

 private:
  struct Entry {
    std::string request_hash;
    std::optional<Info> answer;
    Time at;
  };
  using Key = std::pair<std::string, std::string>;
  void DropOld();

  std::map<Key, Entry> entries_;
  std::list<Key> finished_;  // oldest first
};

}  // namespace caisson::sandbox

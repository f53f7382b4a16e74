// How often each API key may ask for something, and how much it may have.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "base/async.h"
#include "base/config.h"
#include "store/store.h"

namespace caisson::sandbox {

// Fills at a steady rate up to `burst` tokens; every request takes one.
class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;

  // Full at first.
  TokenBucket(double per_second, double burst, Clock::time_point now)
      : per_second_(per_second), burst_(burst), tokens_(burst), filled_(now) {}

  // Takes a token. If there is none, says how long until there is one.
  Clock::duration Take(Clock::time_point now);
  // Zero if there is a token.
  Clock::duration Wait(Clock::time_point now) const;

 private:
  double TokensAt(Clock::time_point now) const;

  double per_second_;
  double burst_;
  double tokens_;
  Clock::time_point filled_;
};

class KeyLimiter {
 public:
  using Clock = TokenBucket::Clock;
  using Now = std::function<Clock::time_point()>;

  // `config` outlives this. Tests bring their own clock.
  explicit KeyLimiter(const Config& config, Now now = Clock::now)
      : config_(config), now_(std::move(now)) {}

  // Reads what keys have of their own instead of the server's settings. It holds for all keys of
  // the same user together. May be called again when keys have changed.
  Task<Status> Load(store::Store& store);
  void Set(const std::string& key_id, const store::KeyLimits& limits);

  // kResourceExhausted when the key asks too often. Each success counts.
  Status TakeRequest(const std::string& key_id);
  Status TakeCreate(const std::string& key_id);
  // What a key has of its own; all unset if nothing. Valid until the next Load() or Set().
  const store::KeyLimits& OwnLimits(const std::string& key_id) const;
  // The longest life of one run.
  std::chrono::seconds LongestTimeout(const std::string& key_id) const;
  // How many may run at once; 0 = unlimited.
  int64_t MaxSandboxes(const std::string& key_id) const;
  // When a refused key should try again: at least a second.
  std::chrono::seconds RetryAfter(const std::string& key_id) const;

 private:
  using Buckets = std::map<std::string, TokenBucket>;

  const Config& config_;
  const Now now_;
  std::map<std::string, store::KeyLimits> own_;
  // One per key that is limited and has asked: there are only as many as there are keys.
  Buckets requests_;
  Buckets creates_;
};

}  // namespace caisson::sandbox

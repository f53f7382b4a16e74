// Passwords as argon2id hashes, computed off the loop thread.
#pragma once

#include <string>

#include "base/async.h"

namespace caisson::account {

inline constexpr size_t kMinPassword = 10, kMaxPassword = 1000;  // characters

class PasswordHasher {
 public:
  PasswordHasher();
  ~PasswordHasher();

  // kInvalidArgument if it is too short or too long; kResourceExhausted if too many wait.
  Task<Result<std::string>> Hash(std::string password);
  // True if `hash` is of this password. An empty hash is of none, and takes the same time.
  Task<Result<bool>> Verify(std::string hash, std::string password);

 private:
  Status Enter();

  asio::thread_pool pool_;
  int waiting_ = 0;
};

}  // namespace caisson::account

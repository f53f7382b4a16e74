// Answers to POST requests with an Idempotency-Key, kept so that sending one again does nothing
// twice.
#pragma once

#include <set>
#include <string>

#include "api/refusal.h"
#include "base/async.h"
#include "base/config.h"
#include "base/time.h"
#include "store/account_rows.h"
#include "store/store.h"

namespace caisson::api {

struct IdempotentRequest {
  std::string user_id;
  std::string key;    // as the client sent it
  std::string route;  // "POST /api/v1/tasks"
  std::string hash;   // of everything that makes it this request
};

class Idempotency {
 public:
  // Both outlive it. What was at work before now is not at work any more: the server has ended
  // in between.
  Idempotency(store::Store& store, const Config& config)
      : store_(store), config_(config), boot_(Now()) {}

  struct Begun {
    std::string id;      // of the row, for Finish()
    std::string new_id;  // for what the request makes, the same at every attempt
    // What was answered the first time, if it was.
    std::optional<store::IdempotencyRow> earlier;
  };
  // 409 if the key came with another request, or the first one is still at work (retryable).
  Task<Checked<Begun>> Begin(IdempotentRequest request);
  // Keeps the answer, or forgets the request if sending it again may help (5xx, 429). Part of the
  // transaction of the audit row.
  static Status Finish(store::Transaction& tx, const std::string& id, unsigned status,
                       const std::string& body);
  // After that, however it went: nobody is at work on it any more.
  void End(const std::string& id) { at_work_.erase(id); }

 private:
  store::Store& store_;
  const Config& config_;
  const Time boot_;
  std::set<std::string> at_work_;  // ids of rows that this server has to finish
};

}  // namespace caisson::api

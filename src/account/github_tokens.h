// Tokens that users gave this server to act at GitHub in their name. Sealed in the store; nobody is
// ever shown one. Of several servers on one database each has its own: their secrets differ.
#pragma once

#include <optional>
#include <string>

#include "base/async.h"
#include "store/person_rows.h"
#include "store/store.h"

namespace caisson::account {

class GithubTokens {
 public:
  // `store` outlives it. `secret` is the server's.
  GithubTokens(store::Store& store, std::string secret)
      : store_(store), secret_(std::move(secret)) {}

  // In the place of the one before. `login`: whose it is at GitHub.
  Task<Result<store::GithubTokenRow>> Set(std::string user_id, std::string token,
                                          std::string login);
  // What is known of it without opening it.
  Task<Result<std::optional<store::GithubTokenRow>>> Find(std::string user_id);
  // The token itself. kUnauthenticated: there is none, or this server cannot open it any more; the
  // message says what to do.
  Task<Result<std::string>> Open(std::string user_id);
  // One that is not there is no error.
  Task<Status> Delete(std::string user_id);

 private:
  store::Store& store_;
  const std::string secret_;
};

// Inside the caller's transaction: kFailedPrecondition, with what to do, if the user gave this
// server (store::Store::node()) none.
Status NeedGithubToken(store::Transaction& tx, const std::string& node, const std::string& user_id);

}  // namespace caisson::account

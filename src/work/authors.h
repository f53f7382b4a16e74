// In whose name the platform opens, changes and comments pull requests: the setting
// pull_request_identity. Git itself and all reading stay with the server's own credential.
#pragma once

#include <memory>
#include <string>

#include "account/github_tokens.h"
#include "forge/github.h"
#include "store/work_rows.h"
#include "work/platform.h"

namespace caisson::work {

class Authors {
 public:
  // All outlive it; `server` has the server's own credential.
  Authors(asio::any_io_executor executor, Platform platform, account::GithubTokens& tokens,
          forge::GitHub& server);

  const std::string& identity() const { return platform_.config.pull_request_identity; }
  // GitHub as this user's pull requests are made with. Nobody steps in for a user who gave no
  // token: that is kUnauthenticated, and the message says what to do. The server itself may have
  // no credential, and that object knows.
  Task<Result<std::shared_ptr<forge::GitHub>>> Of(std::string user_id);

  // ---- users' tokens
  // Asks GitHub whose it is before it is kept. kInvalidArgument: nobody's.
  Task<Result<store::GithubTokenRow>> SetToken(std::string user_id, std::string token);
  Task<Result<std::optional<store::GithubTokenRow>>> FindToken(std::string user_id) {
    return tokens_.Find(std::move(user_id));
  }
  Task<Status> DeleteToken(std::string user_id) { return tokens_.Delete(std::move(user_id)); }

 private:
  asio::any_io_executor executor_;
  Platform platform_;
  account::GithubTokens& tokens_;
  std::shared_ptr<forge::GitHub> server_;  // whom Of() gives when it is no user
};

// Before work begins that ends in a pull request: kFailedPrecondition if its owner would have to
// open it and gave no token.
Status CheckAuthor(store::Transaction& tx, const Platform& platform, const std::string& owner_id);

}  // namespace caisson::work

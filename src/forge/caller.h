// One call of GitHub's API as the rest of the module makes it: authenticated, within a deadline,
// repeated where that is safe, patient with rate limits, its failures told in sentences.
#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "forge/app_token.h"
#include "forge/token_pool.h"
#include "forge/transport.h"

namespace caisson::forge {

struct Ask {
  std::string method, path;  // below the API's URL: "/repos/octo/widget", "/graphql"
  std::string what;          // for errors: "pull request 3 of octo/widget"
  std::optional<boost::json::value> body = {};
  // False: doing it twice is worse than failing. A lost answer is then kUnavailable or
  // kDeadlineExceeded, and the caller finds out what happened.
  bool repeatable = true;
};

class Caller {
 public:
  // With the credential of the settings.
  Caller(asio::any_io_executor executor, const Config& config);
  // With these tokens, separated by commas, and nothing else.
  Caller(asio::any_io_executor executor, const Config& config, std::string_view tokens);

  bool configured() const { return app_ || !pool_.empty(); }
  // The body of a success, null if it has none.
  Task<Result<boost::json::value>> Call(Ask ask);
  // The items of all pages, up to `limit`; of a page that is an object, those in its `list`.
  Task<Result<std::vector<boost::json::value>>> Pages(Ask ask, size_t limit, std::string list = "");
  Task<Result<std::string>> Token(bool refresh);
  TokenPool& pool() { return pool_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct App {
    std::string id, installation_id, key;
    Error problem{Code::kFailedPrecondition, ""};  // with its key; "" if none
    AppToken token;
    bool renewing = false;
  };
  // How far a call has come.
  struct Progress {
    Clock::time_point end;
    int attempts = 0;
    bool renewed = false;
  };

  Task<Result<http::Response>> Send(Ask ask);
  Task<Result<TokenPool::Slot*>> Credential(Clock::time_point end);
  Task<Status> RenewAppToken(Clock::time_point end);
  Task<Status> WaitUntil(Time when, Clock::time_point end);
  // Returns when the request should be sent again.
  Task<Status> AfterNoAnswer(const Ask& ask, Transport::Outcome& outcome, Progress& progress);
  // True if the request should be sent again.
  Task<Result<bool>> AfterAnswer(const Ask& ask, const http::Response& answer,
                                 TokenPool::Slot& slot, Progress& progress);
  http::RequestHead Head(const Ask& ask, std::string_view credential) const;
  std::string Target(std::string_view path) const;
  // The path of a URL that GitHub gave. SECURITY: its host is not looked at; the token goes only
  // where the settings say.
  std::string PathOf(std::string_view url) const;
  std::chrono::milliseconds AttemptTime(Clock::time_point end) const;
  Error Clean(Error error) const;

  std::chrono::milliseconds timeout_;
  Status usable_;  // why not, if the URL is wrong
  Transport transport_;
  TokenPool pool_;
  std::unique_ptr<App> app_;
  Condition renewed_;
};

}  // namespace caisson::forge

// Signing in by GitHub: an OAuth app (the settings github_oauth_*). The token that comes of it is
// used once, to ask who it is, and kept nowhere.
#pragma once

#include <boost/json/value.hpp>
#include <string>

#include "base/config.h"
#include "forge/transport.h"

namespace caisson::forge {

class OAuth {
 public:
  OAuth(asio::any_io_executor executor, const Config& config);

  // Whether there is such a way at all.
  bool configured() const;
  // Where a browser is sent to; GitHub sends it back with a code and the same `state`.
  std::string AuthorizeUrl(std::string_view state) const;

  struct Person {
    int64_t id = 0;  // never changes, unlike the login
    std::string login;
  };
  // Who came back with this code. kUnauthenticated: GitHub does not know it (any more).
  // kPermissionDenied: not one of github_oauth_allowed_users. kUnavailable: no answer.
  Task<Result<Person>> Identify(std::string code);

 private:
  Task<Result<std::string>> Redeem(std::string code);
  Task<Result<Person>> WhoIs(std::string token);
  Task<Result<boost::json::value>> Ask(Transport& to, http::RequestHead head, std::string body);
  bool IsAllowed(std::string_view login) const;

  const Config& config_;
  Transport site_, api_;
};

}  // namespace caisson::forge

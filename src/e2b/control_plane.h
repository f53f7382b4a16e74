// What all routes of the control plane have in common: the key or the login, the rates, bodies, the
// shape of answers. E2B's routes and our own are built on it.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "account/accounts.h"
#include "account/audit_trail.h"
#include "base/config.h"
#include "http/router.h"
#include "sandbox/manager.h"

namespace caisson::e2b {

class ControlPlane {
 public:
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

 protected:
  // All of these outlive it.
  ControlPlane(sandbox::Manager& manager, const account::Accounts& accounts,
               account::AuditTrail& audit, const Config& config)
      : manager_(manager), accounts_(accounts), audit_(audit), config_(config) {}
  ~ControlPlane() = default;

  // One authenticated request.
  struct Call {
    http::Exchange& exchange;
    http::PathParams params;
    std::string key_id;       // of the user: whatever they make belongs to them
    bool only_looks = false;  // a viewer
    std::string& target;      // what was changed, for the audit log; at first what the path names

    http::Query query() const { return exchange.request().ParsedQuery(); }
  };
  using Answer = Task<Result<http::Response>>;
  using Handler = std::function<Answer(Call)>;
  struct Route {
    std::string_view method;
    std::string_view pattern;
    Handler handler;
  };

  // Adds the routes, and an OPTIONS route beside each for browsers. Every answer, refusals
  // included, has E2B's shape and CORS headers. Calls that change something, or tried to, are in
  // the audit log soon after; those over a rate and those of nobody who is known are not.
  void Add(http::Router& router, std::vector<Route> routes);

  // The whole body. One that stops coming has been answered (408) when this returns its error.
  Task<Result<std::string>> ReadText(http::Exchange& exchange) const;
  Task<Result<boost::json::object>> ReadBody(http::Exchange& exchange, bool optional) const;

  sandbox::Manager& manager_;
  const account::Accounts& accounts_;
  account::AuditTrail& audit_;
  const Config& config_;

 private:
  // Authenticates, counts against the key's rate, runs the handler, sends its answer.
  Task<void> Serve(http::Exchange& exchange, http::PathParams params, std::string action,
                   Handler handler);
  Answer Ask(http::Exchange& exchange, http::PathParams params, account::Identity who,
             Handler handler, std::string& target);
  void WriteDown(const http::Exchange& exchange, const account::Identity& who, std::string action,
                 std::string target, unsigned status);
  // Of what is not found here: the server that has it, if another one of this database does.
  Answer SayWhere(std::string key_id, std::string id, Result<http::Response> answer);
  Task<void> ServePreflight(http::Exchange& exchange, std::string methods);
  // The user whose key or whose login it is.
  Result<account::Identity> Authenticate(const http::RequestHead& request) const;
  // kPermissionDenied: it came by cookies, changes state, and is without the CSRF token.
  Result<account::Identity> Identify(const http::RequestHead& request) const;
};

// An integer parameter of the query within a range; nothing if it is absent.
Result<std::optional<int64_t>> TakeNumber(const http::Query& query, std::string_view name,
                                          int64_t min, int64_t max);

}  // namespace caisson::e2b

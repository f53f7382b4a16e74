// What every route of /api/v1 has in common: who asks and what they may, the schema of the body,
// limits, idempotency, the audit row, the shape of errors. The routes describe themselves; the
// OpenAPI document is made of the same descriptions, so it cannot differ from what is served.
#pragma once

#include <boost/json/value.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/refusal.h"
#include "base/config.h"
#include "http/router.h"
#include "store/store.h"

namespace caisson::account {
class Accounts;
}

namespace caisson::api {

namespace json = boost::json;

// Who asks.
struct Principal {
  std::string user_id;        // owner of what they make; "" on routes that need nobody
  std::string key_id;         // "" when they came by a login
  std::string role;           // "admin", "member", "viewer"
  std::string login_id = {};  // "" when they came by a key
  bool admin() const { return role == "admin"; }
};

struct Call {
  http::Exchange& exchange;
  http::PathParams params;
  http::Query query;  // checked against the operation's parameters
  Principal who;
  json::object body;      // checked against the operation's schema; empty if there is none
  std::string raw_body;   // only where the operation asks for it
  std::string new_id;     // for what the call makes; repeated after a crash it is the same
  std::string target;     // a handler may set it: the id of what was changed, for the audit log
  http::Headers headers;  // of every answer; a handler that streams puts them into its own head
  bool inner = false;     // within another operation, see Frame::Run(): the answer is no stream

  // Whose things are meant: the caller's, or everybody's ("") for an admin who said all=true;
  // others who say so were refused.
  std::string owner() const {
    return who.admin() && query.Get("all") == "true" ? std::string() : who.user_id;
  }
};
using Answer = Task<Result<http::Response>>;
using Handler = std::function<Answer(Call&)>;

enum class Access { kNobody, kViewer, kMember, kAdmin };

struct Parameter {
  std::string_view name;
  std::string_view type = "string";  // "integer", "boolean"
  std::string_view description;
  std::vector<std::string> values = {};  // the only ones, if not empty
  bool repeated = false;                 // may be given several times
  int64_t min = 0, max = INT64_MAX;      // of an integer
};

struct Operation {
  std::string_view method, pattern;  // "POST", "/api/v1/tasks/{id}/start"
  std::string_view tag;              // the chapter of the document
  std::string_view id;               // operationId, unique: "startTask"
  std::string_view summary;
  Access access = Access::kMember;
  std::vector<Parameter> parameters = {};  // of the query
  std::string_view request = {};           // the name of its schema; "" = it takes no body
  bool body_optional = false;
  bool wants_raw_body = false;  // any content, up to api_max_body_bytes: a webhook
  // Its body holds files: texts as long as api_max_body_bytes, build_max_files of them.
  bool takes_files = false;
  bool reads_body = false;  // any content: the handler reads it from the exchange, an upload
  bool lasts = false;       // as long as what it is asked to do: a command
  bool secret = false;      // its answer holds a secret and is not kept for its Idempotency-Key
  // Status -> name of the schema of its body, "" = none. Errors (400, 401, 403, 404, 429, 500 ...)
  // are added by the frame; name those of its own here: {409, "Error"}.
  std::map<int, std::string_view> responses = {{200, "Object"}};
  std::string_view stream = {};  // "text/event-stream", "application/octet-stream": no JSON answer
  Handler handler = {};
};

// Whether it takes an Idempotency-Key: every POST of somebody.
bool IsIdempotent(const Operation& operation);
// For lists: an admin may ask for everybody's things.
inline const Parameter kAllParameter{
    .name = "all", .type = "boolean", .description = "of all users; only for admins"};

// How often a user may ask, and when one who was refused should try again.
struct Rates {
  std::function<Status(const std::string& user_id)> admit;
  std::function<std::chrono::seconds(const std::string& user_id)> retry_after;
};

class Frame {
 public:
  // All of these outlive it.
  Frame(http::Router& router, store::Store& store, account::Accounts& accounts,
        const Config& config);
  ~Frame();

  // A JSON schema (2020-12, the part that schema.h checks) by its name; others refer to it with
  // {"$ref":"#/components/schemas/NAME"}.
  void AddSchema(std::string_view name, std::string_view text);
  // Its method and pattern, and its id, must not be taken: that would be a mistake in this program
  // and ends it.
  void Add(Operation operation);
  // Another spelling of a path that is there already: the same handler, marked deprecated.
  void AddAlias(std::string_view method, std::string_view pattern, std::string_view canonical);

  // Carries out the operation `id` within another one, for the same caller: what is in `call` is
  // checked as if it had come by a request of its own. For operations that read no body themselves.
  Task<http::Response> Run(std::string_view id, Call& call);

  // Those whose time says nothing about the server, as "GET /api/v1/events": streams, files, and
  // what lasts as long as the caller's command.
  std::set<std::string> LastingRoutes() const;

  void SetRates(Rates rates);
  // For tests: an answer that its operation does not describe becomes a 500.
  void CheckAnswers();

  // The OpenAPI 3.1 document of everything that was added.
  json::object Document() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caisson::api

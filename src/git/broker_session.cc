#include "git/broker_session.h"

#include <algorithm>

#include "base/encoding.h"
#include "base/log.h"
#include "base/text.h"
#include "git/ssh_relay.h"

namespace caisson::git {
namespace {

constexpr size_t kReplayBytes = 64 << 10;  // a body up to this size can be sent a second time
constexpr uint64_t kMaxDrain = 256 << 20;  // of a push that is refused
constexpr int kMaxRedirects = 3;

bool IsRedirect(unsigned status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

enum class Coding { kPlain, kGzip };
// Nothing if it is another one.
std::optional<Coding> BodyCoding(const http::Exchange& exchange) {
  std::string coding = ToLower(exchange.request().headers.Value("Content-Encoding"));
  if (coding == "gzip" || coding == "x-gzip") return Coding::kGzip;
  if (coding.empty() || coding == "identity") return Coding::kPlain;
  return std::nullopt;
}

// Only a plain success goes in as it is.
std::optional<http::Headers> PassSuccess(const http::ResponseHead& head) {
  if (head.status != 200) return std::nullopt;
  return GitResponseHeaders(head.headers);
}

// What a model answers goes in whatever it is, but not where it wants to send us.
std::optional<http::Headers> PassModel(const http::ResponseHead& head) {
  if (IsRedirect(head.status) || head.status < 200) return std::nullopt;
  return ModelResponseHeaders(head.headers);
}

}  // namespace

BrokerSession::BrokerSession(std::shared_ptr<BrokerContext> context, Grant grant, Origin origin)
    : context_(std::move(context)), grant_(std::move(grant)), origin_(std::move(origin)) {
  path_ = fmt::format("{}/{}.git", origin_.path, grant_.repository.full_name());
}

Task<void> BrokerSession::Serve(http::Exchange& exchange) {
  Route route = FindRoute(exchange.request(), grant_, context_->models);
  switch (route.kind) {
    case Route::Kind::kRefused:
      co_return co_await Refuse(exchange, route.status, std::move(route.message));
    case Route::Kind::kModel:
      co_return co_await ServeModel(exchange, std::move(route));
    case Route::Kind::kReceive:
      co_return co_await ServePush(exchange);
    case Route::Kind::kUploadRefs:
    case Route::Kind::kReceiveRefs: {
      RequestBody none(exchange, /*unpack=*/false);
      if (!none.whole())
        co_return co_await Refuse(exchange, 400, "A request for the refs has no body.");
      bool fetch = route.kind == Route::Kind::kUploadRefs;
      co_return co_await Forward(
          exchange, none,
          {.service = fetch ? "git-upload-pack" : "git-receive-pack", .refs = true});
    }
    case Route::Kind::kUpload:
      co_return co_await ServeFetch(exchange);
  }
}

Task<void> BrokerSession::ServeFetch(http::Exchange& exchange) {
  // What a fetch asks for needs no reading: all of the repository may be read. SSH knows no gzip.
  auto coding = BodyCoding(exchange);
  if (grant_.by_ssh && !coding)
    co_return co_await Refuse(exchange, 415, "This coding of the body is not understood.");
  bool unpack = grant_.by_ssh && coding == Coding::kGzip;
  RequestBody body(exchange, unpack);
  if (!co_await body.ReadAhead(kReplayBytes)) co_return;
  ++context_->numbers.fetches;
  co_await Forward(exchange, body, {.service = "git-upload-pack", .unpacked = unpack});
}

Task<void> BrokerSession::ServePush(http::Exchange& exchange) {
  auto coding = BodyCoding(exchange);
  if (!coding)
    co_return co_await Refuse(exchange, 415, "This coding of the body is not understood.");
  bool packed = coding == Coding::kGzip;
  // SECURITY: nothing goes on before the whole list of refs is read and found good. What goes on
  // are the very bytes that were read, unpacked, so that nobody can read them differently.
  RequestBody body(exchange, packed);
  PushRequest push;
  while (!push.done()) {
    auto piece = co_await body.Next();
    if (!piece || piece->empty())
      co_return co_await Refuse(exchange, 400, "The list of refs to push is not complete.");
    if (Status fed = push.Feed(*piece); !fed)
      co_return co_await Refuse(exchange, 400, fed.error().message());
  }
  std::vector<std::string> why;
  for (const RefUpdate& update : push.updates())
    why.push_back(push.Has("push-options")
                      ? "push options are not passed on"
                      : WhyRefused({grant_.push_prefixes, grant_.push_tags}, update));
  // Without commands it is git's way to ask whether it may push; nothing may be behind it.
  if (why.empty() && push.has_rest())
    co_return co_await Refuse(exchange, 400, "There is a pack without a ref to push.");
  if (std::any_of(why.begin(), why.end(), [](const auto& one) { return !one.empty(); }))
    co_return co_await RefusePush(exchange, body, push, std::move(why));

  body.Keep(push.bytes());
  if (!co_await body.ReadAhead(kReplayBytes)) co_return;
  if (!why.empty()) ++context_->numbers.pushes;
  co_await Forward(exchange, body, {.service = "git-receive-pack", .unpacked = packed});
}

// In git's own words, so that it prints them.
Task<void> BrokerSession::RefusePush(http::Exchange& exchange, RequestBody& body,
                                     const PushRequest& push, std::vector<std::string> why) {
  ++context_->numbers.refused;
  std::string note;
  for (size_t i = 0; i < why.size(); ++i) {
    if (note.empty() && !why[i].empty()) note = "Refused: " + why[i] + ".";
    if (why[i].empty()) why[i] = "refused together with others";
  }
  LogInfo("a push was refused", {{"repository", grant_.repository.full_name()}, {"why", note}});
  // git does not listen before it has sent everything.
  for (uint64_t drained = 0; !body.whole() && drained < kMaxDrain;) {
    auto piece = co_await body.Next();
    if (!piece) break;
    drained += piece->size();
  }
  http::Response response;
  response.headers = {{"Content-Type", "application/x-git-receive-pack-result"},
                      {"Cache-Control", "no-cache"}};
  response.body = RefusalReport(push, why, note);
  (void)co_await exchange.Send(std::move(response));
}

Task<void> BrokerSession::ServeModel(http::Exchange& exchange, Route route) {
  const http::RequestHead& inside = exchange.request();
  constexpr std::string_view kMethods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
  if (std::find(std::begin(kMethods), std::end(kMethods), inside.method) == std::end(kMethods))
    co_return co_await Refuse(exchange, 405, "This method does not go to a model.");
  auto origin = ParseOrigin(route.model->base_url);
  if (!origin) co_return co_await Answer(exchange, 502, origin.error().message());
  ++context_->numbers.model_requests;
  // SECURITY: the host is ours to say, whatever the request names; the key is added here, outside.
  http::RequestHead head{.method = inside.method,
                         .target = origin->path + route.target,
                         .headers = ModelRequestHeaders(inside.headers, *route.model)};
  head.headers.Set("Host", origin->host);
  auto connection = co_await ConnectTo(*origin, context_->limits);
  if (!connection) co_return co_await Unreachable(exchange, *origin, connection.error());
  RequestBody body(exchange, /*unpack=*/false);
  Relay relay(exchange, **connection, body, PassModel);
  Relay::End end = co_await relay.Run(std::move(head));
  co_await Conclude(exchange, end, relay, *origin);
}

Task<void> BrokerSession::ForwardBySsh(http::Exchange& exchange, RequestBody& body, Errand errand) {
  SshRelay relay(exchange, context_->ssh, grant_.repository, errand.service,
                 context_->limits.stall_timeout);
  Relay::End end = errand.refs ? co_await relay.PassRefs() : co_await relay.PassRequest(body);
  if (end == Relay::End::kStatus)
    co_return co_await Answer(exchange, relay.failure().status, relay.failure().text);
  // git must notice that something is missing.
  if (end == Relay::End::kBroken) exchange.Abort();
}

Task<void> BrokerSession::Forward(http::Exchange& exchange, RequestBody& body, Errand errand) {
  if (grant_.by_ssh) co_return co_await ForwardBySsh(exchange, body, std::move(errand));
  auto authorization = co_await Authorization(/*refresh=*/false);
  bool refreshed = false;
  for (int redirects = 0;;) {
    if (!authorization) {
      LogWarn("there is no credential for a repository",
              {{"repository", grant_.repository.full_name()},
               {"error", authorization.error().message()}});
      co_return co_await Answer(exchange, 503,
                                "The server has no credential for this repository at the moment.");
    }
    auto connection = co_await ConnectTo(origin_, context_->limits);
    if (!connection) co_return co_await Unreachable(exchange, origin_, connection.error());
    Relay relay(exchange, **connection, body, PassSuccess);
    Relay::End end = co_await relay.Run(Outgoing(exchange.request(), errand, *authorization));
    bool answered = end == Relay::End::kStatus;
    if (answered && relay.status() == 401 && grant_.credential && !refreshed) {
      refreshed = true;
      authorization = co_await Authorization(/*refresh=*/true);
      if (body.whole()) continue;
      co_return co_await Answer(exchange, 503,
                                "The server's credential had to be renewed; push once more.");
    }
    bool follow = answered && IsRedirect(relay.status()) && errand.refs &&
                  ++redirects <= kMaxRedirects && Follow(relay.location(), errand);
    if (!follow) co_return co_await Conclude(exchange, end, relay, origin_);
  }
}

http::RequestHead BrokerSession::Outgoing(const http::RequestHead& inside, const Errand& errand,
                                          const std::string& authorization) const {
  http::RequestHead head{.method = errand.refs ? "GET" : "POST",
                         .target = path_ + errand.behind(),
                         .headers = GitRequestHeaders(inside.headers)};
  head.headers.Set("Host", origin_.host);
  if (!errand.refs)
    head.headers.Set("Content-Type", fmt::format("application/x-{}-request", errand.service));
  if (errand.unpacked) head.headers.Remove("Content-Encoding");
  // SECURITY: the only place where the token is written, and it is on its way out.
  if (!authorization.empty()) head.headers.Set("Authorization", authorization);
  return head;
}

Task<Result<std::string>> BrokerSession::Authorization(bool refresh) {
  if (!grant_.credential) co_return std::string();
  CO_TRY_ASSIGN(std::string token, co_await grant_.credential(grant_.repository, refresh));
  if (token.empty()) co_return std::string();
  co_return "Basic " + Base64Encode("x-access-token:" + token);
}

// SECURITY: a redirection takes the token along, so it is followed only to the same repository at
// the same host: other spellings of its name. Whoever moved it tells the user, not us.
bool BrokerSession::Follow(const std::string& location, const Errand& errand) {
  auto target = SameOriginTarget(origin_, location);
  std::string behind = errand.behind();
  if (!target || !target->ends_with(behind)) return false;
  std::string path = target->substr(0, target->size() - behind.size());
  std::string_view name = path;
  if (name.ends_with(".git")) name.remove_suffix(4);
  if (!EqualsIgnoreCase(name, origin_.path + "/" + grant_.repository.full_name())) return false;
  path_ = path;
  return true;
}

Task<void> BrokerSession::Conclude(http::Exchange& exchange, Relay::End end, const Relay& relay,
                                   const Origin& origin) {
  const std::string& host = origin.host;
  switch (end) {
    case Relay::End::kPassed:
    case Relay::End::kClientGone:
      co_return;
    case Relay::End::kBroken:
      // git must notice that the pack is not complete.
      co_return exchange.Abort();
    case Relay::End::kNoAnswer:
      co_return co_await Answer(exchange, 502,
                                fmt::format("{} did not answer: {}", host, relay.text()));
    case Relay::End::kStatus:
      break;
  }
  unsigned status = relay.status();
  if (IsRedirect(status))
    co_return co_await Answer(
        exchange, 502,
        fmt::format("{} says that this is elsewhere now, which is not followed. "
                    "Give the new address to the server.",
                    host));
  // SECURITY: never 401, which would make git inside ask for a password.
  if (status == 401)
    co_return co_await Answer(exchange, 403,
                              fmt::format("{} refused the server's credential.", host));
  std::string text =
      relay.text().empty() ? fmt::format("{} answered {}.", host, status) : relay.text();
  bool known = status == 403 || status == 404 || status == 413 || status == 429 || status >= 500;
  co_await Answer(exchange, known ? status : 502, std::move(text));
}

Task<void> BrokerSession::Unreachable(http::Exchange& exchange, const Origin& origin,
                                      const Error& error) {
  // A wrong certificate or address stays wrong: git inside shall not try again.
  unsigned status = error.code() == Code::kFailedPrecondition ? 403 : 502;
  return Answer(exchange, status,
                fmt::format("{} cannot be reached: {}", origin.host, error.message()));
}

Task<void> BrokerSession::Refuse(http::Exchange& exchange, unsigned status, std::string why) {
  ++context_->numbers.refused;
  co_await Answer(exchange, status, std::move(why));
}

Task<void> BrokerSession::Answer(http::Exchange& exchange, unsigned status, std::string text) {
  if (exchange.answered()) co_return exchange.Abort();
  if (!text.ends_with('\n')) text += '\n';
  http::Response response = http::Response::Text(status, std::move(text));
  if (status == 501) {
    // git-lfs reads its errors as JSON.
    response = http::Response::Json(501, {{"message", Trim(response.body)}});
    response.headers.Set("Content-Type", "application/vnd.git-lfs+json");
  }
  (void)co_await exchange.Send(std::move(response));
}

}  // namespace caisson::git

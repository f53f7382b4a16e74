#include "forge/caller.h"

#include <boost/json.hpp>

#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "forge/answer.h"
#include "forge/fields.h"

namespace caisson::forge {
namespace {

constexpr int kAttempts = 3;
constexpr int kMaxPages = 50;
constexpr int kMaxRedirects = 3;
constexpr auto kFirstPause = std::chrono::milliseconds(200);

Endpoint EndpointOr(const Result<Endpoint>& endpoint) { return endpoint.value_or(Endpoint()); }

// Twice as long each time, and never exactly as long as others wait.
std::chrono::milliseconds Pause(int attempt) {
  uint16_t random = 0;
  FillRandom(&random, sizeof random);
  auto base = kFirstPause * (1 << (attempt - 1));
  return base + base * random / 65'536;
}

bool Transient(unsigned status) {
  return status == 500 || status == 502 || status == 503 || status == 504;
}

bool Redirected(unsigned status, std::string_view method) {
  return status == 307 || status == 308 || (status == 301 && method == "GET");
}

}  // namespace

Caller::Caller(asio::any_io_executor executor, const Config& config, std::string_view tokens)
    : timeout_(config.github_timeout_ms),
      transport_(executor, EndpointOr(ParseEndpoint(config.github_api_url))),
      pool_(tokens),
      renewed_(executor) {
  if (auto endpoint = ParseEndpoint(config.github_api_url); !endpoint)
    usable_ = tl::unexpected(endpoint.error());
}

Caller::Caller(asio::any_io_executor executor, const Config& config)
    : Caller(std::move(executor), config,
             config.github_app_id.empty() ? std::string_view(config.github_token) : "") {
  if (config.github_app_id.empty()) return;
  app_ = std::make_unique<App>();
  app_->id = config.github_app_id;
  app_->installation_id = config.github_installation_id;
  pool_.Add("");
  if (config.github_app_key_file.starts_with("-----BEGIN"))  // read before root was given up
    app_->key = config.github_app_key_file;
  else if (auto key = ReadFile(config.github_app_key_file))
    app_->key = std::move(*key);
  else
    app_->problem = Error(Code::kFailedPrecondition,
                          "The key file of the GitHub App (github_app_key_file) is not readable.");
}

Task<Result<json::value>> Caller::Call(Ask ask) {
  CO_TRY_ASSIGN(http::Response answer, co_await Send(ask));
  if (answer.body.empty()) co_return json::value();
  co_return ReadBody(answer);
}

Task<Result<std::vector<json::value>>> Caller::Pages(Ask ask, size_t limit, std::string list) {
  std::vector<json::value> items;
  for (int page = 0; page < kMaxPages; ++page) {
    CO_TRY_ASSIGN(http::Response answer, co_await Send(ask));
    CO_TRY_ASSIGN(json::value body, ReadBody(answer));
    json::array* found = body.if_array();
    if (!list.empty() && body.is_object())
      if (json::value* inner = body.get_object().if_contains(list)) found = inner->if_array();
    if (!found) co_return Fail(Code::kUnavailable, "GitHub's answer is no list.");
    for (json::value& item : *found) {
      if (items.size() == limit) co_return items;
      items.push_back(std::move(item));
    }
    std::string_view next = NextPage(answer.headers.Value("Link"));
    if (next.empty() || items.size() == limit) break;
    ask.path = PathOf(next);
  }
  co_return items;
}

Task<Result<std::string>> Caller::Token(bool refresh) {
  CO_TRY(usable_);
  auto end = Clock::now() + timeout_;
  if (refresh && app_) app_->token = {};
  // Of several tokens the next one may be better; a single one is what there is.
  if (refresh && !app_)
    if (TokenPool::Slot* slot = pool_.Pick(Now())) pool_.Refuse(*slot);
  CO_TRY_ASSIGN(TokenPool::Slot * slot, co_await Credential(end));
  co_return slot->token;
}

std::string Caller::PathOf(std::string_view url) const {
  if (size_t scheme = url.find("://"); scheme != url.npos) {
    size_t path = url.find('/', scheme + 3);
    url = path == url.npos ? "/" : url.substr(path);
  }
  const std::string& prefix = transport_.endpoint().prefix;
  return std::string(url.starts_with(prefix + "/") ? url.substr(prefix.size()) : url);
}

std::string Caller::Target(std::string_view path) const {
  std::string_view prefix = transport_.endpoint().prefix;
  // Enterprise has its REST API at /api/v3 and GraphQL at /api/graphql.
  if (path == "/graphql" && prefix.ends_with("/api/v3")) prefix.remove_suffix(3);
  return std::string(prefix) + std::string(path);
}

http::RequestHead Caller::Head(const Ask& ask, std::string_view credential) const {
  http::RequestHead head;
  head.method = ask.method;
  head.target = Target(ask.path);
  head.headers = {{"Accept", "application/vnd.github+json"},
                  {"X-GitHub-Api-Version", "2022-11-28"},
                  {"User-Agent", "caisson/" CAISSON_VERSION},
                  {"Authorization", fmt::format("Bearer {}", credential)}};
  if (ask.body) head.headers.Set("Content-Type", "application/json");
  return head;
}

std::chrono::milliseconds Caller::AttemptTime(Clock::time_point end) const {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  // A server that hangs must leave time for a second attempt.
  return std::max(std::min(left, timeout_ / 2), std::chrono::milliseconds(1));
}

// SECURITY: nobody should ever repeat a token to us, and if somebody does it goes no further.
Error Caller::Clean(Error error) const {
  std::string message = error.message();
  const TokenPool::Slot* slot = pool_.current();
  if (!slot || slot->token.empty()) return error;
  for (size_t at; (at = message.find(slot->token)) != std::string::npos;)
    message.replace(at, slot->token.size(), "***");
  return Error(error.code(), std::move(message));
}

Task<Result<http::Response>> Caller::Send(Ask ask) {
  CO_TRY(usable_);
  Progress progress{.end = Clock::now() + timeout_};
  std::string body = ask.body ? json::serialize(*ask.body) : "";
  for (int redirects = 0;;) {
    CO_TRY_ASSIGN(TokenPool::Slot * slot, co_await Credential(progress.end));
    if (slot->blocked_until && *slot->blocked_until > Now())
      CO_TRY(co_await WaitUntil(*slot->blocked_until, progress.end));
    ++progress.attempts;
    Transport::Outcome outcome = co_await transport_.Exchange(
        Head(ask, slot->token), body, ask.repeatable, AttemptTime(progress.end));
    if (!outcome.answer) {
      CO_TRY(co_await AfterNoAnswer(ask, outcome, progress));
      continue;
    }
    http::Response& answer = *outcome.answer;
    pool_.Observe(*slot, answer.headers, Now());
    if (answer.status >= 200 && answer.status < 300) co_return std::move(answer);
    // A repository that was renamed.
    if (Redirected(answer.status, ask.method) && ++redirects <= kMaxRedirects) {
      ask.path = PathOf(answer.headers.Value("Location"));
      continue;
    }
    CO_TRY_ASSIGN(bool again, co_await AfterAnswer(ask, answer, *slot, progress));
    if (!again) co_return tl::unexpected(Clean(ErrorOf(answer, ask.what)));
  }
}

Task<Status> Caller::AfterNoAnswer(const Ask& ask, Transport::Outcome& outcome,
                                   Progress& progress) {
  const Error& error = outcome.answer.error();
  bool safe = ask.repeatable || !outcome.maybe_done;
  auto pause = Pause(progress.attempts);
  if (error.code() == Code::kCanceled || !safe || progress.attempts >= kAttempts ||
      Clock::now() + pause >= progress.end) {
    Code code = error.code() == Code::kCanceled           ? Code::kCanceled
                : error.code() == Code::kDeadlineExceeded ? Code::kDeadlineExceeded
                                                          : Code::kUnavailable;
    co_return tl::unexpected(Clean(Error(code, "GitHub could not be reached: " + error.message())));
  }
  LogInfo("a request to GitHub is repeated", {{"what", ask.what}, {"why", error.message()}});
  co_await SleepFor(pause);
  co_return Status();
}

Task<Result<bool>> Caller::AfterAnswer(const Ask& ask, const http::Response& answer,
                                       TokenPool::Slot& slot, Progress& progress) {
  if (answer.status == 401) {
    if (!app_) co_return pool_.Refuse(slot);
    app_->token = {};
    co_return !std::exchange(progress.renewed, true);
  }
  if (auto until = RateLimitedUntil(answer, Now())) {
    slot.blocked_until = *until;  // it was not carried out, so it may be sent again
    co_return true;
  }
  auto pause = Pause(progress.attempts);
  if (!Transient(answer.status) || !ask.repeatable || progress.attempts >= kAttempts ||
      Clock::now() + pause >= progress.end)
    co_return false;
  LogInfo("a request to GitHub is repeated",
          {{"what", ask.what}, {"why", fmt::format("status {}", answer.status)}});
  co_await SleepFor(pause);
  co_return true;
}

Task<Status> Caller::WaitUntil(Time when, Clock::time_point end) {
  auto wait = std::chrono::ceil<std::chrono::milliseconds>(when - Now());
  if (Clock::now() + wait >= end)
    co_return Fail(Code::kResourceExhausted,
                   "GitHub's rate limit is used up; it takes requests again at {} (in {} s).",
                   FormatTime(std::chrono::ceil<std::chrono::seconds>(when)),
                   std::chrono::ceil<std::chrono::seconds>(wait).count());
  LogInfo("waiting for GitHub's rate limit", {{"milliseconds", wait.count()}});
  co_await SleepFor(wait);
  co_return Status();
}

Task<Result<TokenPool::Slot*>> Caller::Credential(Clock::time_point end) {
  if (app_) CO_TRY(co_await RenewAppToken(end));
  TokenPool::Slot* slot = pool_.Pick(Now());
  if (!slot)
    co_return Fail(Code::kFailedPrecondition,
                   "github_not_configured: there is no credential for GitHub: set github_token "
                   "(GITHUB_TOKEN), or "
                   "github_app_id, github_installation_id and github_app_key_file.");
  co_return slot;
}

Task<Status> Caller::RenewAppToken(Clock::time_point end) {
  while (app_->renewing)
    if (!co_await renewed_.Wait(end) && app_->renewing)
      co_return Fail(Code::kDeadlineExceeded, "GitHub gave no token for the App in time.");
  if (app_->token.Fresh(Now())) co_return Status();
  if (!app_->problem.message().empty()) co_return tl::unexpected(app_->problem);
  // Whoever comes meanwhile waits for this one.
  struct Guard {
    Caller& caller;
    explicit Guard(Caller& c) : caller(c) { c.app_->renewing = true; }
    ~Guard() {
      caller.app_->renewing = false;
      caller.renewed_.Notify();
    }
  } guard(*this);
  Ask ask{.method = "POST",
          .path = fmt::format("/app/installations/{}/access_tokens", app_->installation_id),
          .what = "the installation of the App"};
  for (int attempt = 1;; ++attempt) {
    CO_TRY_ASSIGN(std::string claim, MakeAppClaim(app_->key, app_->id, Now()));
    Transport::Outcome outcome =
        co_await transport_.Exchange(Head(ask, claim), "", /*repeatable=*/true, AttemptTime(end));
    Progress progress{.end = end, .attempts = attempt, .renewed = true};
    if (!outcome.answer) {
      CO_TRY(co_await AfterNoAnswer(ask, outcome, progress));
      continue;
    }
    if (outcome.answer->status == 201) {
      CO_TRY_ASSIGN(app_->token, ReadAppToken(outcome.answer->body));
      pool_.Pick(Now())->token = app_->token.token;
      co_return Status();
    }
    if (!Transient(outcome.answer->status) || attempt >= kAttempts)
      co_return tl::unexpected(ErrorOf(*outcome.answer, ask.what));
    co_await SleepFor(Pause(attempt));
  }
}

}  // namespace caisson::forge

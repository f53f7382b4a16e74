#include "work/authors.h"

#include <algorithm>

#include "base/text.h"

namespace caisson::work {
namespace {

// SECURITY: it becomes a header's value, and a comma would make several of it.
bool CanBeToken(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != ','; });
}

// The bot has a token; without one the App is all the server has.
bool HasBothAndIsBot(const Config& config) {
  return config.pull_request_identity == "bot" && !config.github_app_id.empty() &&
         !Trim(config.github_token).empty();
}

}  // namespace

Authors::Authors(asio::any_io_executor executor, Platform platform, account::GithubTokens& tokens,
                 forge::GitHub& server)
    : executor_(std::move(executor)),
      platform_(platform),
      tokens_(tokens),
      server_(std::shared_ptr<void>(), &server) {
  if (HasBothAndIsBot(platform_.config))
    server_ =
        std::make_shared<forge::GitHub>(executor_, platform_.config, platform_.config.github_token);
}

Task<Result<std::shared_ptr<forge::GitHub>>> Authors::Of(std::string user_id) {
  if (identity() != "user") co_return server_;
  CO_TRY_ASSIGN(std::string token, co_await tokens_.Open(std::move(user_id)));
  platform_.log.redactor().Add(token);
  co_return std::make_shared<forge::GitHub>(executor_, platform_.config, token);
}

Task<Result<store::GithubTokenRow>> Authors::SetToken(std::string user_id, std::string token) {
  if (!CanBeToken(token))
    co_return Fail(Code::kInvalidArgument, "a GitHub token has no spaces, commas or line ends");
  forge::GitHub github(executor_, platform_.config, token);
  auto login = co_await github.GetLogin();
  if (!login && login.error().code() == Code::kUnauthenticated)
    co_return Fail(Code::kInvalidArgument, "{}", login.error().message());
  CO_TRY(login);
  // SECURITY: not before it is known to be one; any word could be cut out of all texts otherwise.
  platform_.log.redactor().Add(token);
  co_return co_await tokens_.Set(std::move(user_id), std::move(token), *login);
}

Status CheckAuthor(store::Transaction& tx, const Platform& platform, const std::string& owner_id) {
  if (platform.config.pull_request_identity != "user") return {};
  return account::NeedGithubToken(tx, platform.store.node(), owner_id);
}

}  // namespace caisson::work

#include "session/options.h"

#include "work/json_fields.h"

namespace caisson::session {

using store::SessionRow;
using work::ParseObject;
using work::TextOf;

std::map<std::string, std::string> EnvOf(const SessionRow& session) {
  std::map<std::string, std::string> env;
  boost::json::object options = ParseObject(session.options);
  for (const auto& [name, value] : work::ObjectIn(options, "env"))
    if (value.is_string()) env[std::string(name)] = std::string(value.as_string());
  return env;
}

bool Commits(const SessionRow& session, const Config& config) {
  boost::json::object options = ParseObject(session.options);
  const boost::json::value* said = options.if_contains("commit");
  return said && said->is_bool() ? said->as_bool() : config.session_commit;
}

bool CanPush(const SessionRow& session, const Config& config) {
  if (config.github_token.empty() && config.github_app_id.empty()) return false;
  auto repository = git::ParseRepository(session.repo_url, config.github_url);
  return repository && repository->base_url == config.github_url;
}

bool OpensPullRequest(const SessionRow& session, const Config& config) {
  std::string when = TextOf(ParseObject(session.options), "pull_request");
  if (when.empty()) when = config.session_pull_request;
  return when == "first_commit" && CanPush(session, config);
}

std::string BranchFor(const SessionRow& session, const Config& config) {
  if (!session.branch.empty()) return session.branch;
  std::string named = TextOf(ParseObject(session.options), "branch_name");
  if (!named.empty()) return named;
  return git::BranchName(config.session_branch_template, session.id, 0, "", session.title);
}

}  // namespace caisson::session

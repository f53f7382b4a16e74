#include "work/git_desk.h"

#include "base/text.h"
#include "git/commit_message.h"
#include "work/event.h"

namespace caisson::work {
namespace {

using store::Assign;
using store::Select;
using store::Transaction;

constexpr int kMaxCommits = 100;

// The row remembers several repositories one after the other.
std::vector<std::string> ReposOf(const SandboxRow& row) {
  std::vector<std::string> repos;
  for (std::string_view one : Split(row.repo_url, ' '))
    if (!one.empty()) repos.emplace_back(one);
  return repos;
}

// The one of them that is the same, by whatever way it was cloned.
std::optional<git::Repository> FindAmong(const std::vector<std::string>& repos,
                                         const git::Repository& wanted, const Config& config) {
  for (const std::string& one : repos) {
    auto known = git::ParseRepository(one, config.github_url);
    if (known && known->clone_url() == wanted.clone_url()) return *known;
  }
  return std::nullopt;
}

tl::unexpected<Error> NotConfigured() {
  return Fail(Code::kUnavailable,
              "github_not_configured: this server has no GitHub token (github_token)");
}

std::string Subject(const std::string& message) { return message.substr(0, message.find('\n')); }

std::string BodyOf(const std::vector<git::CommitInfo>& commits) {
  std::string body = "## Changes\n\n";
  for (const git::CommitInfo& commit : commits)
    body += fmt::format("- {} ({})\n", Subject(commit.message), commit.sha.substr(0, 10));
  return body;
}

}  // namespace

GitSubject GitDesk::SubjectOf(const SandboxRow& row) {
  return {.owner_id = row.owner_id,
          .sandbox_id = row.id,
          .task_id = row.task_id.value_or(""),
          .agent_id = row.agent_id.value_or(""),
          .execution_id = row.holder_kind == "task" ? row.holder_id : "",
          .session_id = row.holder_kind == "session" ? row.holder_id : ""};
}

Task<Result<GitDesk::Spot>> GitDesk::Find(Place place) {
  CO_TRY_ASSIGN(SandboxRow row, co_await sandboxes_.Find(place.owner_id, place.sandbox_id));
  std::vector<std::string> repos = ReposOf(row);
  std::string url = place.repo;
  if (url.empty() && repos.size() > 1)
    co_return Fail(Code::kInvalidArgument,
                   "this sandbox has {} repositories: name one of them as `repo`", repos.size());
  if (url.empty() && repos.empty())
    co_return Fail(Code::kFailedPrecondition, "no repository was cloned into this sandbox yet");
  if (url.empty()) url = repos.front();
  CO_TRY_ASSIGN(git::Repository repository, git::ParseRepository(url, platform_.config.github_url));
  auto known = FindAmong(repos, repository, platform_.config);
  if (!known)
    co_return Fail(Code::kNotFound, "{} was not cloned into this sandbox", repository.full_name());
  co_return Spot{SubjectOf(row), row, *known, checkouts_.PathOf(row.id, *known)};
}

Task<caisson::Status> GitDesk::Remember(std::string sandbox_id,
                                        std::vector<store::Assignment> assignments) {
  CO_TRY(co_await platform_.store.Write([=](Transaction& tx) {
    return tx.Set(Select<SandboxRow>().Eq(&SandboxRow::id, sandbox_id), assignments);
  }));
  co_return caisson::Status();
}

Task<Result<git::CloneResult>> GitDesk::Clone(Place place, std::string repo_url, std::string branch,
                                              int64_t depth) {
  CO_TRY_ASSIGN(git::Repository repository,
                git::ParseRepository(repo_url, platform_.config.github_url));
  if (!branch.empty()) CO_TRY(git::CheckBranchName(branch));
  CO_TRY_ASSIGN(SandboxRow row, co_await sandboxes_.Find(place.owner_id, place.sandbox_id));
  GitSubject subject = SubjectOf(row);
  CO_TRY(co_await checkouts_.Grant(subject, repository, row.branch_name));
  std::function<Task<Result<git::CloneResult>>(git::Git&)> work = [&](git::Git& git) {
    return git.Clone(git::Broker::RemoteUrl(repository), branch, depth);
  };
  CO_TRY_ASSIGN(auto cloned,
                co_await checkouts_.With(subject, checkouts_.PathOf(subject.sandbox_id, repository),
                                         std::move(work)));
  std::vector<std::string> repos = ReposOf(row);
  if (!FindAmong(repos, repository, platform_.config)) repos.push_back(repository.address());
  std::vector<store::Assignment> news = {
      Assign(&SandboxRow::repo_url, fmt::format("{}", fmt::join(repos, " "))),
      Assign(&SandboxRow::repo_path, cloned.path),
      Assign(&SandboxRow::last_commit_sha, cloned.head_sha)};
  // In a checkout that was there, a branch that grew from the base may be checked out.
  if (cloned.cloned || !branch.empty() || row.base_branch.empty())
    news.push_back(Assign(&SandboxRow::base_branch, cloned.branch));
  CO_TRY(co_await Remember(row.id, std::move(news)));
  co_return cloned;
}

Task<Result<std::string>> GitDesk::BranchOfTask(const SandboxRow& row) {
  if (!row.task_id)
    co_return Fail(Code::kInvalidArgument, "the branch needs a `name`: this sandbox has no task");
  std::string id = *row.task_id;
  CO_TRY_ASSIGN(auto task, co_await platform_.store.Read([id](Transaction& tx) {
    return tx.Need<store::TaskRow>(id, "task");
  }));
  co_return git::BranchName(platform_.config.branch_template, task.id, task.number,
                            row.agent_id.value_or(""), task.title);
}

Task<Result<git::BranchResult>> GitDesk::Branch(Place place, std::string name, std::string base) {
  CO_TRY_ASSIGN(Spot spot, co_await Find(place));
  if (name.empty()) {
    CO_TRY_ASSIGN(name, co_await BranchOfTask(spot.row));
  }
  CO_TRY(git::CheckBranchName(name));
  if (!base.empty()) CO_TRY(git::CheckBranchName(base));
  CO_TRY(co_await checkouts_.Grant(spot.subject, spot.repository, name));
  std::function<Task<Result<git::BranchResult>>(git::Git&)> work = [&](git::Git& git) {
    return git.Branch(name, base);
  };
  CO_TRY_ASSIGN(auto made, co_await checkouts_.With(spot.subject, spot.path, std::move(work)));
  CO_TRY(co_await Remember(spot.row.id, {Assign(&SandboxRow::branch_name, made.branch)}));
  co_return made;
}

Task<Result<std::vector<std::string>>> GitDesk::Stage(Place place,
                                                      std::vector<std::string> patterns) {
  CO_TRY_ASSIGN(Spot spot, co_await Find(place));
  std::function<Task<Result<std::vector<std::string>>>(git::Git&)> work = [&](git::Git& git) {
    return git.Stage(patterns);
  };
  co_return co_await checkouts_.With(spot.subject, spot.path, std::move(work));
}

Task<Result<git::CommitResult>> GitDesk::Commit(Place place, CommitRequest request) {
  // Before anything is touched.
  CO_TRY(git::CheckCommitMessage(request.message));
  CO_TRY_ASSIGN(Spot spot, co_await Find(place));
  if (request.stage_all) CO_TRY(co_await Stage(place, {}));
  const Config& config = platform_.config;
  std::string name = request.author_name.empty() ? config.git_user_name : request.author_name;
  std::string email = request.author_email.empty() ? config.git_user_email : request.author_email;
  std::function<Task<Result<git::CommitResult>>(git::Git&)> work = [&](git::Git& git) {
    return git.Commit(request.message, name, email, {});
  };
  CO_TRY_ASSIGN(auto made, co_await checkouts_.With(spot.subject, spot.path, std::move(work)));
  if (made.committed)
    CO_TRY(co_await Remember(spot.row.id,
                             {Assign(&SandboxRow::last_commit_sha, made.sha),
                              Assign(&SandboxRow::last_commit_message, Subject(request.message))}));
  co_return made;
}

Task<Result<GitDesk::Pushed>> GitDesk::Push(Place place, std::string branch) {
  CO_TRY_ASSIGN(Spot spot, co_await Find(place));
  if (branch.empty()) {
    CO_TRY_ASSIGN(auto status, co_await Status(place));
    branch = status.branch;
  }
  CO_TRY(git::CheckBranchName(branch));
  if (!github_.configured() && spot.repository.base_url == platform_.config.github_url &&
      spot.repository.ssh.empty())
    co_return NotConfigured();
  if (github_.configured() && spot.repository.base_url == platform_.config.github_url) {
    auto guarded =
        co_await github_.IsProtected({spot.repository.owner, spot.repository.name}, branch);
    if (guarded && *guarded)
      co_return Fail(Code::kFailedPrecondition,
                     "{} is a protected branch of {}: push another one and open a pull request",
                     branch, spot.repository.full_name());
  }
  CO_TRY(co_await checkouts_.Grant(spot.subject, spot.repository, branch));
  std::function<Task<Result<std::string>>(git::Git&)> work = [&](git::Git& git) {
    return git.Push(branch);
  };
  CO_TRY_ASSIGN(auto sha, co_await checkouts_.With(spot.subject, spot.path, std::move(work)));
  CO_TRY(co_await Remember(spot.row.id, {Assign(&SandboxRow::branch_name, branch),
                                         Assign(&SandboxRow::last_commit_sha, sha)}));
  co_return Pushed{branch, sha};
}

Task<Result<git::StatusResult>> GitDesk::Status(Place place) {
  CO_TRY_ASSIGN(Spot spot, co_await Find(place));
  std::function<Task<Result<git::StatusResult>>(git::Git&)> work = [](git::Git& git) {
    return git.Status();
  };
  co_return co_await checkouts_.With(spot.subject, spot.path, std::move(work));
}

Task<Result<git::DiffResult>> GitDesk::Diff(Place place, std::string base,
                                            std::vector<std::string> files) {
  CO_TRY_ASSIGN(Spot spot, co_await Find(place));
  std::function<Task<Result<git::DiffResult>>(git::Git&)> work = [&](git::Git& git) {
    return git.Diff(base, files);
  };
  co_return co_await checkouts_.With(spot.subject, spot.path, std::move(work));
}

Task<Result<std::vector<git::CommitInfo>>> GitDesk::History(Place place, int count) {
  CO_TRY_ASSIGN(Spot spot, co_await Find(place));
  std::function<Task<Result<std::vector<git::CommitInfo>>>(git::Git&)> work = [&](git::Git& git) {
    return git.History(count);
  };
  co_return co_await checkouts_.With(spot.subject, spot.path, std::move(work));
}

Task<Result<git::PullResult>> GitDesk::Pull(Place place, bool rebase) {
  CO_TRY_ASSIGN(Spot spot, co_await Find(place));
  CO_TRY(co_await checkouts_.Grant(spot.subject, spot.repository, spot.row.branch_name));
  std::function<Task<Result<git::PullResult>>(git::Git&)> work = [&](git::Git& git) {
    return git.Pull(rebase);
  };
  co_return co_await checkouts_.With(spot.subject, spot.path, std::move(work));
}

Task<Result<std::string>> GitDesk::Tag(Place place, std::string name, std::string message) {
  CO_TRY_ASSIGN(Spot spot, co_await Find(place));
  CO_TRY(git::CheckBranchName(name));
  std::function<Task<Result<std::string>>(git::Git&)> work = [&](git::Git& git) {
    return git.Tag(name, message);
  };
  co_return co_await checkouts_.With(spot.subject, spot.path, std::move(work));
}

Task<Result<forge::GitHub::Made>> GitDesk::OpenPullRequest(Place place, PullRequestText text) {
  CO_TRY_ASSIGN(auto github, co_await authors_.Of(place.owner_id));
  if (!github->configured()) co_return NotConfigured();
  CO_TRY_ASSIGN(Spot spot, co_await Find(place));
  CO_TRY_ASSIGN(auto status, co_await Status(place));
  std::string base = text.base.empty() ? spot.row.base_branch : text.base;
  CO_TRY(git::CheckBranchName(base));
  std::function<Task<Result<std::vector<git::CommitInfo>>>(git::Git&)> work = [&](git::Git& git) {
    return git.History(kMaxCommits, "origin/" + base + "..HEAD");
  };
  CO_TRY_ASSIGN(auto commits, co_await checkouts_.With(spot.subject, spot.path, std::move(work)));
  if (commits.empty() || status.branch == base)
    co_return Fail(Code::kFailedPrecondition, "nothing_to_review: {} has no commit that {} has not",
                   status.branch, base);
  forge::NewPullRequest request{
      .title = text.title.empty() ? Subject(commits.front().message) : text.title,
      .body = text.body.empty() ? BodyOf(commits) : text.body,
      .head = status.branch,
      .base = base,
      .draft = text.draft,
      .labels = text.labels,
      .reviewers = text.reviewers};
  CO_TRY_ASSIGN(auto made, co_await github->CreatePullRequest(
                               {spot.repository.owner, spot.repository.name}, request));
  forge::PullRequest pull = made.pull_request;
  CO_TRY(co_await platform_.store.Write([=, this](Transaction& tx) -> caisson::Status {
    // Not whether it was made just now: who made it may have died before this was written.
    TRY_ASSIGN(auto row, tx.Get<SandboxRow>(spot.row.id));
    if (!row || row->pr_number == pull.number) return {};
    TRY(tx.Set(Select<SandboxRow>().Eq(&SandboxRow::id, spot.row.id),
               {Assign(&SandboxRow::pr_number, pull.number)}));
    store::ExecutionRow about{.id = spot.subject.execution_id,
                              .owner_id = spot.subject.owner_id,
                              .task_id = spot.row.task_id,
                              .agent_id = spot.row.agent_id,
                              .sandbox_id = spot.row.id};
    store::EventRow event = About(about, "pr_created",
                                  {{"pr_number", pull.number},
                                   {"pr_url", pull.url},
                                   {"identity", authors_.identity()},
                                   {"author", pull.author}});
    event.session_id = spot.subject.session_id;
    TRY(platform_.log.Emit(tx, event));
    return {};
  }));
  co_return made;
}

}  // namespace caisson::work

#include "work/local_workshop.h"

#include "base/log.h"
#include "work/detached_process.h"
#include "work/sandbox_time.h"

namespace caisson::work {
namespace {

constexpr int kMaxCommits = 200;
constexpr int kRebases = 3;  // of one push
// A sandbox is left so long before its end: saving a large one takes its time.
constexpr std::chrono::minutes kMoveTime{10};

GitSubject SubjectOf(const Job& job) {
  return {job.owner_id, job.sandbox_id, job.task_id, job.agent_id, job.execution_id};
}

// $1: the checkout, $2: the commit it began with.
constexpr std::string_view kAwaitCommit = R"sh(
while :; do
  head=$(git -C "$1" rev-parse -q --verify HEAD 2>/dev/null)
  [ -n "$head" ] && [ "$head" != "$2" ] && exit 0
  sleep 2
done
)sh";
// Whoever waits stops waiting when the agent has ended; this only bounds what nobody stopped.
constexpr std::chrono::hours kCommitPatience{25};

CheckoutKey KeyOf(const Config& config, const Job& job) {
  return {.owner_id = job.owner_id,
          .repository = job.repository.address(),
          .template_name = job.template_name.empty() ? config.task_template : job.template_name,
          .depth = config.clone_depth};
}

// Rejected is also what a rule of the repository forbids: then there is nothing new to pull.
Task<Result<std::string>> PushOnTop(git::Git& git, std::string branch, const Config& config) {
  for (int rebases = 0;; ++rebases) {
    auto pushed = co_await git.Push(branch);
    if (pushed || pushed.error().code() != Code::kFailedPrecondition) co_return pushed;
    if (rebases == kRebases)
      co_return Fail(Code::kAborted,
                     "others commit to {} faster than this work can be put on top of theirs; it "
                     "was tried {} times",
                     branch, kRebases);
    co_await SleepFor(std::chrono::milliseconds(config.git_retry_min_ms << rebases));
    auto pulled = co_await git.Pull(/*rebase=*/true);
    if (!pulled && pulled.error().code() != Code::kNotFound)
      co_return tl::unexpected(pulled.error());
    if (pulled && !pulled->conflicts.empty())
      co_return Fail(Code::kAborted,
                     "somebody else has committed to {} meanwhile, which conflicts with this work "
                     "in: {}. Change the branch, or resolve it in the sandbox, and answer the run",
                     branch, fmt::join(pulled->conflicts, ", "));
    if (!pulled || !pulled->moved || pulled->branch != branch) co_return pushed;
  }
}

std::string AgentName(const Job& job) { return "agent-" + job.execution_id; }

}  // namespace

LocalWorkshop::LocalWorkshop(Platform platform, Sandboxes& sandboxes, Checkouts& checkouts,
                             KeptCheckouts& kept, Authors& authors, AgentLoop& loop)
    : platform_(platform),
      sandboxes_(sandboxes),
      checkouts_(checkouts),
      kept_(kept),
      authors_(authors),
      loop_(loop) {}

std::string LocalWorkshop::PathOf(const Job& job) const {
  return checkouts_.PathOf(job.sandbox_id, job.repository);
}

Task<Status> LocalWorkshop::OpenBroker(Job job) {
  return checkouts_.Grant(SubjectOf(job), job.repository, job.push_prefix);
}

template <class T>
Task<Result<T>> LocalWorkshop::With(Job job, std::function<Task<Result<T>>(git::Git&)> work) {
  return checkouts_.With(SubjectOf(job), PathOf(job), std::move(work));
}

Task<Result<SandboxRow>> LocalWorkshop::MakeSandbox(Job job) {
  SandboxRequest request{.owner_id = job.owner_id,
                         .holder = {.kind = "task",
                                    .id = job.execution_id,
                                    .agent_id = job.agent_id,
                                    .task_id = job.task_id},
                         .template_name = job.template_name,
                         .repo_url = job.repository.is_scratch() ? "" : job.repository.address()};
  CO_TRY_ASSIGN(auto there, co_await sandboxes_.FindByHolder("task", job.execution_id));
  if (there || job.repository.is_scratch()) co_return co_await sandboxes_.Create(request);
  auto kept = co_await kept_.Find(KeyOf(platform_.config, job));
  if (!kept) co_return co_await sandboxes_.Create(request);
  SandboxRequest warm = request;
  warm.template_name = kept->snapshot;
  auto made = co_await sandboxes_.Create(std::move(warm));
  if (made) {
    co_await kept_.Used(std::move(*kept));
    co_return made;
  }
  if (!co_await kept_.Failed(std::move(*kept), made.error())) co_return made;
  co_return co_await sandboxes_.Create(std::move(request));
}

Task<Result<std::string>> LocalWorkshop::Open(Job job) {
  CO_TRY_ASSIGN(SandboxRow row, co_await MakeSandbox(job));
  job.sandbox_id = row.id;
  // Who reads its files has to know where they are.
  CO_TRY(co_await platform_.store.Write([id = row.id, path = PathOf(job)](store::Transaction& tx) {
    return tx.Set(store::Select<SandboxRow>().Eq(&SandboxRow::id, id),
                  {store::Assign(&SandboxRow::repo_path, path)});
  }));
  CO_TRY(co_await OpenBroker(job));
  co_return row.id;
}

Task<Result<git::CloneResult>> LocalWorkshop::Clone(Job job, std::string base) {
  if (job.repository.is_scratch())
    co_return co_await With<git::CloneResult>(job,
                                              [&](git::Git& git) { return git.Init(job.begun); });
  auto cloned = co_await With<git::CloneResult>(job, [&](git::Git& git) {
    std::string url = git::Broker::RemoteUrl(job.repository);
    int64_t depth = platform_.config.clone_depth;
    return job.untouched ? git.Refresh(url, base, depth) : git.Clone(url, base, depth);
  });
  // SECURITY: only now, and not in the background: what an agent leaves must not be in it.
  if (cloned && job.untouched) co_await kept_.Keep(KeyOf(platform_.config, job), job.sandbox_id);
  co_return cloned;
}

Task<Result<git::Git::BranchResult>> LocalWorkshop::Branch(Job job, std::string name,
                                                           std::string base) {
  // A name that was taken is given a new one, which the broker has to know.
  CO_TRY(co_await OpenBroker(job));
  co_return co_await With<git::BranchResult>(job,
                                             [&](git::Git& git) { return git.Branch(name, base); });
}

Task<Result<sdk::CommandResult>> LocalWorkshop::RunAgent(Job job, sdk::Command command) {
  CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect(job.owner_id, job.sandbox_id));
  if (AgentLoop::Runs(command))
    co_return co_await loop_.Run(
        {job.owner_id, job.execution_id, job.sandbox_id, job.agent_id, job.task_id},
        connection.envd, std::move(command));
  CommandRunner run = [&connection](sdk::Command one) {
    return connection.envd.Run(std::move(one));
  };
  co_return co_await RunDetached(std::move(run), AgentName(job), std::move(command));
}

Task<Status> LocalWorkshop::EndAgent(Job job) {
  CO_TRY(co_await loop_.Forget(job.execution_id, job.sandbox_id));
  CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect(job.owner_id, job.sandbox_id));
  CommandRunner run = [&connection](sdk::Command one) {
    return connection.envd.Run(std::move(one));
  };
  co_return co_await EndDetached(std::move(run), AgentName(job), sdk::Command().user);
}

Task<Status> LocalWorkshop::Rest(Job job) {
  CO_TRY_ASSIGN(auto row, co_await sandboxes_.FindByHolder("task", job.execution_id));
  if (!row) co_return Status();
  co_return co_await sandboxes_.Pause(job.owner_id, row->id);
}

Task<Status> LocalWorkshop::AwaitCommit(Job job, std::string base_sha) {
  CO_TRY_ASSIGN(auto connection, co_await sandboxes_.Connect(job.owner_id, job.sandbox_id));
  sdk::Command command;
  command.argv = {"/bin/sh", "-c", std::string(kAwaitCommit), "sh", PathOf(job), base_sha};
  command.timeout = kCommitPatience;
  CO_TRY_ASSIGN(auto result, co_await connection.envd.Run(std::move(command)));
  if (result.exit_code != 0)
    co_return Fail(Code::kUnavailable, "waiting for a commit ended with status {}",
                   result.exit_code);
  co_return Status();
}

Task<Result<git::CommitResult>> LocalWorkshop::Commit(Job job, CommitRequest request) {
  std::vector<std::string> patterns = request.leave_out;
  if (!patterns.empty()) patterns.insert(patterns.begin(), ".");
  CO_TRY(co_await With<std::vector<std::string>>(
      job, [&](git::Git& git) { return git.Stage(patterns); }));
  co_return co_await With<git::CommitResult>(job, [&](git::Git& git) {
    return git.Commit(request.message, request.author_name, request.author_email, request.trailers);
  });
}

Task<Result<std::vector<git::CommitInfo>>> LocalWorkshop::Commits(Job job, std::string base_sha) {
  std::string range = base_sha.empty() ? "" : base_sha + "..HEAD";
  co_return co_await With<std::vector<git::CommitInfo>>(
      job, [&](git::Git& git) { return git.History(kMaxCommits, range); });
}

Task<Result<git::ChangesResult>> LocalWorkshop::Changes(Job job, std::string base,
                                                        std::vector<std::string> leave_out) {
  co_return co_await With<git::ChangesResult>(job, [&](git::Git& git) {
    return git.Changes(base, leave_out, platform_.config.task_changes_max_bytes);
  });
}

Task<Result<std::string>> LocalWorkshop::Push(Job job, std::string branch, bool rebase) {
  co_return co_await With<std::string>(job, [&](git::Git& git) {
    return rebase ? PushOnTop(git, branch, platform_.config) : git.Push(branch);
  });
}

Task<Result<forge::GitHub::Made>> LocalWorkshop::OpenPullRequest(Job job,
                                                                 forge::NewPullRequest request) {
  CO_TRY_ASSIGN(auto github, co_await authors_.Of(job.owner_id));
  if (!github->configured())
    co_return Fail(Code::kFailedPrecondition,
                   "there is no pull request: this server has no GitHub token (github_token)");
  co_return co_await github->CreatePullRequest({job.repository.owner, job.repository.name},
                                               std::move(request));
}

Task<Result<forge::PullRequest>> LocalWorkshop::CompletePullRequest(Job job, int64_t number,
                                                                    forge::NewPullRequest request) {
  forge::RepoName repo{job.repository.owner, job.repository.name};
  CO_TRY_ASSIGN(auto github, co_await authors_.Of(job.owner_id));
  CO_TRY_ASSIGN(auto pull, co_await github->UpdatePullRequest(
                               repo, number, {.title = request.title, .body = request.body}));
  if (request.draft || !pull.draft) co_return pull;
  CO_TRY(co_await github->MarkReadyForReview(repo, number));
  pull.draft = false;
  co_return pull;
}

Task<Result<std::chrono::milliseconds>> LocalWorkshop::TimeLeft(Job job) {
  CO_TRY_ASSIGN(SandboxState state, co_await sandboxes_.Get(job.owner_id, job.sandbox_id));
  Time begun = state.row.created_at + std::chrono::milliseconds(state.row.paused_ms);
  Time end = begun + std::chrono::seconds(platform_.config.task_sandbox_timeout_s);
  if (state.ends_at) end = std::min(end, *state.ends_at);
  auto margin = std::min<Time::duration>(kMoveTime, (end - begun) / 4);
  co_return std::chrono::duration_cast<std::chrono::milliseconds>(end - margin - Now());
}

Task<Result<std::string>> LocalWorkshop::Renew(Job job, Renewed also) {
  CO_TRY(co_await EndAgent(job));
  Sandboxes::Renewed renewed = [also = std::move(also)](store::Transaction& tx,
                                                        const SandboxRow& fresh) {
    return also(tx, fresh.id);
  };
  CO_TRY_ASSIGN(SandboxRow fresh,
                co_await sandboxes_.Renew(job.owner_id, job.sandbox_id, std::move(renewed)));
  job.sandbox_id = fresh.id;
  CO_TRY(co_await OpenBroker(job));
  co_return fresh.id;
}

Task<Result<Used>> LocalWorkshop::Measure(Job job) {
  using Row = store::WorkSandboxRow;
  CO_TRY_ASSIGN(auto row,
                co_await platform_.store.Read([id = job.execution_id](store::Transaction& tx) {
                  return tx.First(store::Select<Row>()
                                      .Eq(&Row::holder_kind, "task")
                                      .Eq(&Row::holder_id, id)
                                      .Order(&Row::created_at, true));
                }));
  if (!row) co_return Used{};
  auto ran = std::chrono::duration_cast<std::chrono::milliseconds>(RunningTime(*row, Now()));
  Used used{.sandbox_id = row->id, .running_ms = ran.count()};
  if (row->destroyed_at || row->backend_id.empty()) co_return used;
  auto cpu = co_await sandboxes_.provider().CpuTime(row->owner_id, row->backend_id);
  if (!cpu)
    LogWarn("the CPU time of a sandbox is not known",
            {{"sandbox", row->id}, {"error", cpu.error().message()}});
  else if (*cpu)
    used.cpu_ms = (*cpu)->count();
  co_return used;
}

Task<Status> LocalWorkshop::Release(Job job, bool keep) {
  // One that was made to take the place of another and did not come to it.
  CO_TRY_ASSIGN(auto next,
                co_await sandboxes_.FindByHolder("task", Sandboxes::NextHolder(job.execution_id)));
  if (next) CO_TRY(co_await sandboxes_.Destroy(job.owner_id, next->id, "the task's work is over"));
  CO_TRY_ASSIGN(auto row, co_await sandboxes_.FindByHolder("task", job.execution_id));
  if (!row) co_return Status();
  job.sandbox_id = row->id;
  checkouts_.Revoke(row->id);
  if (!keep)
    co_return co_await sandboxes_.Destroy(job.owner_id, row->id, "the task's work is over");
  if (row->status != "running") co_return Status();
  (void)co_await EndAgent(job);  // one that is still at work must not wake up with it
  co_return co_await sandboxes_.Pause(job.owner_id, row->id);
}

}  // namespace caisson::work

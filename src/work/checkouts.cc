#include "work/checkouts.h"

#include "base/id.h"
#include "base/text.h"
#include "git/recovery.h"
#include "work/event.h"
#include "work/json_fields.h"

namespace caisson::work {
namespace {

using store::GitOperationRow;
using store::Transaction;

constexpr size_t kMaxOutput = 4'000;

store::EventRow Told(const GitSubject& subject, json::object data) {
  store::ExecutionRow execution{
      .id = subject.execution_id, .owner_id = subject.owner_id, .sandbox_id = subject.sandbox_id};
  if (!subject.task_id.empty()) execution.task_id = subject.task_id;
  if (!subject.agent_id.empty()) execution.agent_id = subject.agent_id;
  store::EventRow event = About(execution, "git_operation", std::move(data));
  event.session_id = subject.session_id;
  return event;
}

GitOperationRow RowOf(const GitSubject& subject, const git::Operation& operation) {
  bool well = operation.failure == git::Failure::kNone && operation.exit_code == 0;
  GitOperationRow row{.id = RandomUuid(),
                      .owner_id = subject.owner_id,
                      .sandbox_id = subject.sandbox_id,
                      .execution_id = subject.execution_id,
                      .operation = operation.name,
                      .status = well ? "completed" : "failed",
                      .command = fmt::format("{}", fmt::join(operation.argv, " ")),
                      .exit_code = operation.exit_code,
                      .attempts = operation.attempts,
                      .output_head = Shorten(operation.output, kMaxOutput),
                      .duration_ms = operation.duration.count(),
                      .created_at = Now()};
  if (!subject.task_id.empty()) row.task_id = subject.task_id;
  if (!well) {
    row.error_type = git::FailureName(operation.failure);
    row.error_message = row.output_head;
  }
  if (operation.output.size() > kMaxOutput)
    row.output_tail =
        ToUtf8(std::string_view(operation.output).substr(operation.output.size() - kMaxOutput));
  return row;
}

}  // namespace

git::CredentialSource Checkouts::CredentialFor(const git::Repository& repository) const {
  // SECURITY: the token is for GitHub's host and goes nowhere else.
  if (!github_.configured() || repository.is_scratch() ||
      repository.base_url != platform_.config.github_url)
    return {};
  return [github = &github_](git::Repository, bool refresh) { return github->Token(refresh); };
}

Task<Status> Checkouts::Grant(GitSubject subject, git::Repository repository,
                              std::string push_prefix) {
  std::string wanted = repository.address() + " " + push_prefix;
  if (auto known = grants_.find(subject.sandbox_id);
      known != grants_.end() && known->second.what == wanted &&
      broker_.IsOpen(subject.sandbox_id) &&
      sandboxes_.provider().Listens(known->second.backend_id, git::Broker::kPort))
    co_return Status();
  Revoke(subject.sandbox_id);
  CO_TRY_ASSIGN(auto state, co_await sandboxes_.Get(subject.owner_id, subject.sandbox_id));
  CO_TRY(sandboxes_.CheckHere(state.row));
  CO_TRY_ASSIGN(UniqueFd listener,
                co_await sandboxes_.provider().Listen(state.row.owner_id, state.row.backend_id,
                                                      git::Broker::kPort));
  git::Grant grant{.repository = repository, .credential = CredentialFor(repository)};
  grant.by_ssh = !repository.ssh.empty() && !platform_.config.git_ssh_key_file.empty();
  if (!push_prefix.empty()) grant.push_prefixes.push_back(push_prefix);
  CO_TRY(broker_.Open(subject.sandbox_id, std::move(listener), std::move(grant)));
  grants_[subject.sandbox_id] = {std::move(wanted), state.row.backend_id};
  co_return Status();
}

void Checkouts::Revoke(const std::string& sandbox_id) {
  broker_.Close(sandbox_id);
  grants_.erase(sandbox_id);
}

git::Observer Checkouts::Watch(const GitSubject& subject, std::vector<git::Operation>& done) const {
  return {.started =
              [&log = platform_.log, subject](const std::string& name) {
                log.Gather(Told(subject, {{"operation", name}, {"status", "started"}}));
              },
          .progress =
              [&log = platform_.log, subject](const git::Progress& progress) {
                json::object data{{"operation", progress.operation},
                                  {"status", "in_progress"},
                                  {"message", progress.text}};
                if (progress.percent >= 0) data["progress"] = progress.percent;
                log.Gather(Told(subject, std::move(data)));
              },
          .finished = [&done](const git::Operation& one) { done.push_back(one); }};
}

Task<Status> Checkouts::Record(GitSubject subject, std::vector<git::Operation> operations) {
  if (operations.empty()) co_return Status();
  co_await platform_.log.Flush();  // its progress comes before its end
  co_return co_await platform_.store.Write([=, this](Transaction& tx) -> Status {
    for (const git::Operation& operation : operations) {
      GitOperationRow row = RowOf(subject, operation);
      for (std::string* text :
           {&row.command, &row.error_message, &row.output_head, &row.output_tail})
        *text = platform_.log.redactor().Redact(*text);
      TRY(tx.Insert(row));
      json::object told{{"operation", row.operation},   {"status", row.status},
                        {"message", row.error_message}, {"error_type", row.error_type},
                        {"attempts", row.attempts},     {"duration_ms", row.duration_ms}};
      if (row.status == "failed") told["recovery"] = git::RecoveryOf(operation.failure);
      TRY(platform_.log.Emit(tx, Told(subject, std::move(told))));
    }
    return {};
  });
}

}  // namespace caisson::work

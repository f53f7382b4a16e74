// The sandboxes of the work platform: one row for each, whoever supplies it. A row is there before
// its sandbox and after it, so that nothing is ever left running that nobody knows.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/config.h"
#include "events/log.h"
#include "sandbox/provider.h"
#include "store/sandbox_rows.h"
#include "store/store.h"
#include "work/command_policy.h"

namespace caisson::work {

using SandboxRow = store::WorkSandboxRow;

// For whom a sandbox is made. Each holder has at most one that lives.
struct SandboxHolder {
  std::string kind = "user";  // "task", "session", "build", "user"
  std::string id;             // the execution, session, build; of a user the request that asks
  std::optional<std::string> agent_id;
  std::optional<std::string> task_id;
};

struct SandboxRequest {
  std::string owner_id;
  SandboxHolder holder;
  std::string template_name;        // "" = the provider's usual one
  std::chrono::seconds timeout{0};  // 0 = task_sandbox_timeout_s
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> env;
  bool allow_internet = true;
  std::chrono::seconds wait{0};  // for room, if a quota is used up; 0 = it is refused at once
  bool sleeps = false;           // paused at its end, woken by traffic
  std::string repo_url;
  std::string base_branch;
};

// A row and what the provider says of it now.
struct SandboxState {
  SandboxRow row;
  std::string backend_state;  // "running", "paused", "terminated", "unknown" (it did not answer)
  std::optional<Time> started_at;
  std::optional<Time> ends_at;
  Time checked_at;
};

struct SandboxFilter {
  std::string owner_id;  // "" = of everybody (an administrator)
  std::string status, holder_kind, holder_id, task_id, agent_id;  // "" = any
  bool ended = true;                                              // those that have ended, too
  int64_t limit = 50, offset = 0;
};
struct SandboxList {
  std::vector<SandboxRow> items;  // newest first
  int64_t total = 0;              // of all pages
};

// Whether this is said of a sandbox that another server of this database has.
bool IsElsewhere(const Error& error);

class Sandboxes {
 public:
  // `installation`: a text that no other server has, so that servers that share a provider leave
  // each other's sandboxes alone. Everything given here outlives this.
  Sandboxes(asio::any_io_executor executor, const Config& config, store::Store& store,
            events::Log& log, sandbox::Provider& provider, std::string installation);
  ~Sandboxes();

  // Sets rows and sandboxes right after whatever happened before, then does so regularly.
  Task<Status> Start();
  Task<void> Stop();
  // Called with the id of every sandbox that stops running: paused, ended, or gone.
  void OnStopped(std::function<void(const std::string& id)> handler);

  // The holder's sandbox, running: the one there is, else a new one. Goes on when the caller is
  // canceled. On failure neither a sandbox nor a living row is left.
  Task<Result<SandboxRow>> Create(SandboxRequest request);
  // Asks the provider, and corrects the row. Never wakes it. In all of these, `owner_id` "" is an
  // administrator; someone else's sandbox is kNotFound. That of another server of this database is
  // "unknown" here, and kUnavailable for everything that needs it.
  Task<Result<SandboxState>> Get(std::string owner_id, std::string id);
  // The row; one that came by the E2B API gets its row now.
  Task<Result<SandboxRow>> Find(std::string owner_id, std::string id);
  Task<Result<SandboxList>> List(SandboxFilter filter);
  // The one that lives, nothing if there is none.
  Task<Result<std::optional<SandboxRow>>> FindByHolder(std::string kind, std::string id);

  // A client of its envd, and the row, which is marked as used now. kFailedPrecondition: it does
  // not run; that of a session is woken. A sandbox that the provider does not know any more ends
  // its row: kNotFound.
  struct Connection {
    SandboxRow row;
    sdk::EnvdClient envd;
  };
  Task<Result<Connection>> Connect(std::string owner_id, std::string id);

  Task<Status> Pause(std::string owner_id, std::string id);
  Task<Status> Resume(std::string owner_id, std::string id);
  // Unknown is kNotFound, already ended is fine. If the provider cannot be reached the row stays
  // "terminating", and Reconcile() goes on; so it does at the server that has it, if that is
  // another one.
  Task<Status> Destroy(std::string owner_id, std::string id, std::string reason = "request");

  // kUnavailable "on_another_server: ...": another server of this database has it.
  Status CheckHere(const SandboxRow& row) const;
  // Ends the row for good, and tells it; false if it had ended. Knows nothing of the sandbox.
  static Result<bool> EndRow(store::Transaction& write, const events::Log& log,
                             const SandboxRow& row, const std::string& status,
                             const std::string& reason);

  // ---- sandbox_renewal.cc -----------------------------------------------------------
  // In the transaction in which a fresh sandbox takes the place of an old one.
  using Renewed = std::function<Status(store::Transaction&, const SandboxRow& fresh)>;
  // The holder goes on in a fresh sandbox that begins with what the old one holds; the old one
  // ends. What runs inside may or may not be taken along: end it before. On failure the old one
  // is as it was, except that nobody listens inside any more (OnStopped).
  Task<Result<SandboxRow>> Renew(std::string owner_id, std::string id, Renewed also);
  // Who holds the fresh sandbox of `holder` until it has taken the old one's place.
  static std::string NextHolder(const std::string& holder) { return holder + std::string(kNext); }

  // ---- sandbox_commands.cc --------------------------------------------------------
  struct Execution {
    std::string execution_id;  // of a task, "" = none
    std::string role;          // of who asks: "member", "admin"
    sdk::Command command;
  };
  struct Executed {
    std::string operation_id;  // of its row in git_operations
    sdk::CommandResult result;
  };
  // Writes it down, redacted, and tells the output as events. kPermissionDenied: the policy forbids
  // it. kFailedPrecondition "sandbox_expired: ...": the sandbox's time was over before its end.
  Task<Result<Executed>> Execute(std::string owner_id, std::string id, Execution execution);
  // kNotFound "file_not_found: ..."; kOutOfRange above file_max_bytes.
  Task<Status> Upload(std::string owner_id, std::string id, std::string path,
                      std::function<Task<Result<std::string>>()> next);
  Task<Status> Download(std::string owner_id, std::string id, std::string path,
                        std::function<Task<Status>(std::string_view)> take);
  Task<Result<std::vector<sdk::FileInfo>>> ListFiles(std::string owner_id, std::string id,
                                                     std::string path, int depth);

  // ---- sandbox_care.cc --------------------------------------------------------------
  // Sandboxes without a row are killed, rows without a sandbox end, what was interrupted is
  // finished.
  Task<Status> Reconcile();
  // Ends those that are older than task_sandbox_timeout_s; with `dry_run` only tells which.
  Task<Result<std::vector<SandboxRow>>> CleanUpStale(bool dry_run);
  // Asks the sandboxes of tasks whether they are well; two misses in a row make it an "error".
  Task<void> CheckHealth();

  sandbox::Provider& provider() { return provider_; }

 private:
  static constexpr std::string_view kRowKey = "caisson_row";
  static constexpr std::string_view kInstallationKey = "caisson_installation";
  static constexpr std::string_view kNext = "+next";

  // As long as it lives, Reconcile() leaves the row to whoever has this.
  class Busy {
   public:
    Busy(std::set<std::string>& all, std::string id) : all_(all), id_(std::move(id)) {
      all_.insert(id_);
    }
    ~Busy() { all_.erase(id_); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    std::set<std::string>& all_;
    std::string id_;
  };

  Task<Result<SandboxRow>> FindRow(std::string owner_id, std::string id);
  Task<Result<SandboxRow>> FindLive(std::string owner_id, std::string id);
  // The same, once this process has finished to pause or resume it.
  Task<Result<SandboxRow>> FindSettled(std::string owner_id, std::string id);
  // Of a sandbox that runs. One that sleeps without our knowing is woken if it is a session's.
  Task<Result<sdk::EnvdClient>> EnvdOf(SandboxRow row);
  // The provider's own sandbox; owner "" = whoever has it.
  Task<Result<sandbox::ProviderInfo>> LookUp(std::string owner_id, std::string id);
  Task<Result<SandboxRow>> Adopt(std::string owner_id, std::string id);
  Task<Result<SandboxRow>> CreateOnce(SandboxRequest request);
  Task<Result<std::optional<SandboxRow>>> Reuse(SandboxHolder holder);
  Task<Result<SandboxRow>> MakeFor(SandboxRow row, SandboxRequest request);
  // ---- sandbox_queue.cc: who is above a quota may wait for room.
  Task<Result<sandbox::ProviderInfo>> CreateInTurn(sandbox::ProviderOptions options,
                                                   std::chrono::seconds wait);
  // The row of a sandbox that runs now takes the place of the one that said "creating".
  Task<Result<SandboxRow>> SetRunning(std::string placeholder, SandboxRow row, std::string from);
  Task<Status> DestroyRow(SandboxRow row, std::string reason);
  Task<void> KillByRow(std::string owner_id, std::string row_id);
  // One status becomes another; kFailedPrecondition if it has changed meanwhile.
  Task<Status> Move(SandboxRow row, std::vector<std::string> from, std::string to);
  // Ends the row for good; a second time is fine.
  Task<Status> WriteEnd(SandboxRow row, std::string status, std::string reason);
  Task<Status> SetError(SandboxRow row, std::string operation, std::string message);
  void Stopped(const SandboxRow& row);
  Task<Result<SandboxRow>> RenewOnce(SandboxRow row, Renewed also);
  Task<Result<SandboxRow>> TakePlace(SandboxRow old, SandboxRow fresh, Renewed also);
  // The snapshot that a renewal has left when its server was killed.
  Task<void> DropRenewal(SandboxRow row);
  Task<void> DropSnapshot(std::string owner_id, std::string name);
  static store::EventRow About(const SandboxRow& row, std::string type, boost::json::object data);

  Task<Status> ReconcileRow(SandboxRow row, const std::map<std::string, std::string>& states);
  // Those that this server looks after.
  Task<Result<std::vector<SandboxRow>>> LiveRows();
  // Ids of those that are paused with the task they work for.
  Task<Result<std::set<std::string>>> Resting(std::vector<SandboxRow> rows);
  Task<void> Care();
  Task<void> WatchHealth();
  Task<void> CheckOne(SandboxRow row);
  Task<void> WriteOperation(store::GitOperationRow operation);
  // What became of the sandbox whose command failed.
  Task<Error> WhyFailed(SandboxRow row, Error error);

  asio::any_io_executor executor_;
  const Config config_;
  store::Store& store_;
  events::Log& log_;
  sandbox::Provider& provider_;
  const std::string installation_;
  const std::string node_;  // of the sandboxes made here; "" if every server reaches them
  const CommandPolicy policy_;
  TaskGroup tasks_, operations_;
  std::function<void(const std::string&)> on_stopped_;
  std::set<std::string> busy_;                                // rows that this process works on
  std::map<std::string, int> missed_;                         // health checks in a row
  std::map<std::string, std::shared_ptr<Condition>> making_;  // by holder
  // Creations that wait for room, by owner, oldest first.
  std::map<std::string, std::set<uint64_t>> waiting_;
  int64_t waiting_count_ = 0;
  uint64_t next_ticket_ = 0;
  Condition room_;
};

}  // namespace caisson::work

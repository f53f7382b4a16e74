// Store in SQL, on either database: writes on one connection, in one order; reads on a pool of
// them with PostgreSQL, on the same one with SQLite.
#pragma once

#include <unordered_map>

#include "store/checkpointer.h"
#include "store/postgres_listener.h"
#include "store/store.h"
#include "store/worker.h"

namespace caisson::store {

class SqlStore : public Store {
 public:
  // `first` has the newest schema; `open` makes more connections to the same database.
  SqlStore(std::unique_ptr<Database> first, Worker::OpenDatabase open,
           asio::any_io_executor executor, StoreOptions options);
  // PostgreSQL: hears of the events of other servers from now on.
  void Listen(PostgresListener::Open open);
  // SQLite: `second` is another connection to the same file.
  void StartCheckpoints(std::unique_ptr<Database> second);

  Task<Result<std::vector<ApiKey>>> ListApiKeys() override;
  Task<Status> AddApiKey(ApiKey key) override;
  Task<Status> UpdateApiKey(ApiKey key) override;
  Task<Status> InsertSandbox(SandboxRow row, SandboxEvent event) override;
  Task<Status> UpdateSandbox(SandboxRow row, SandboxEvent event) override;
  Task<Result<std::vector<SandboxRow>>> ListLiveSandboxes() override;
  Task<Result<std::optional<SandboxRow>>> GetSandbox(std::string id) override;
  Task<Result<std::string>> FindNode(std::string key_id, std::string id) override;
  Task<Result<std::vector<TemplateUse>>> ListTemplateUse() override;
  Task<Status> InsertSnapshot(SnapshotRow row, SandboxEvent event) override;
  Task<Status> DeleteSnapshot(std::string id) override;
  Task<Result<std::vector<SnapshotRow>>> ListSnapshots() override;
  Task<Status> AppendEvent(SandboxEvent event) override;
  Task<Result<std::vector<SandboxEvent>>> ListEvents(std::string sandbox_id,
                                                     EventQuery query) override;
  void OnEvents(std::function<void()> called) override { *on_events_ = std::move(called); }
  DatabasePool pool() override;
  const std::string& node() const override { return options_.node; }
  Task<Status> Close() override;

 protected:
  Task<Status> Submit(bool write, std::function<Status(Transaction&)> job) override;

 private:
  Status WriteEvent(Database& database, const SandboxEvent& event);
  Worker& readers() { return readers_ ? *readers_ : writer_; }

  asio::any_io_executor executor_;
  const StoreOptions options_;
  // Shared with calls that are on their way to the executor; used there only.
  std::shared_ptr<std::function<void()>> on_events_ = std::make_shared<std::function<void()>>();
  // Events written per sandbox since its oldest were last deleted; of the writer's thread.
  std::unordered_map<std::string, int64_t> unpruned_;
  Worker writer_;  // from here on: their threads use the members above
  std::optional<Worker> readers_;
  std::optional<Checkpointer> checkpointer_;
  std::optional<PostgresListener> listener_;
};

}  // namespace caisson::store

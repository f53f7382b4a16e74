// Store on a SQLite file.
#pragma once

#include <unordered_map>

#include "store/store.h"
#include "store/worker.h"

namespace caisson::store {

class SqliteStore : public Store {
 public:
  // Two connections to the same file, which has the newest schema.
  SqliteStore(Database database, Database second, asio::any_io_executor executor,
              StoreOptions options);

  Task<Result<std::vector<ApiKey>>> ListApiKeys() override;
  Task<Status> AddApiKey(ApiKey key) override;
  Task<Status> UpdateApiKey(ApiKey key) override;
  Task<Status> InsertSandbox(SandboxRow row, SandboxEvent event) override;
  Task<Status> UpdateSandbox(SandboxRow row, SandboxEvent event) override;
  Task<Result<std::vector<SandboxRow>>> ListLiveSandboxes() override;
  Task<Result<std::optional<SandboxRow>>> GetSandbox(std::string id) override;
  Task<Result<std::vector<TemplateUse>>> ListTemplateUse() override;
  Task<Status> InsertSnapshot(SnapshotRow row, SandboxEvent event) override;
  Task<Status> DeleteSnapshot(std::string id) override;
  Task<Result<std::vector<SnapshotRow>>> ListSnapshots() override;
  Task<Status> AppendEvent(SandboxEvent event) override;
  Task<Result<std::vector<SandboxEvent>>> ListEvents(std::string sandbox_id,
                                                     EventQuery query) override;
  Task<Status> Close() override;

 private:
  // These run on the worker's thread.
  Status WriteEvent(Database& database, const SandboxEvent& event);
  static void DeleteOld(Database& database, int64_t retention_days);

  const int64_t max_events_;
  // Events written per sandbox since its oldest were last deleted; of the worker's thread.
  std::unordered_map<std::string, int64_t> unpruned_;
  Worker worker_;  // last: its thread uses the members above
};

}  // namespace caisson::store

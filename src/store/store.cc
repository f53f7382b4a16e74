#include "store/store.h"

#include "base/id.h"
#include "store/migrations.h"
#include "store/open_database.h"
#include "store/sql_store.h"

namespace caisson::store {
namespace {

// A step of the schema may rewrite a large table.
constexpr std::chrono::milliseconds kMigrationTimeout{3'600'000};

}  // namespace

Result<std::unique_ptr<Store>> OpenStore(const std::string& url, asio::any_io_executor executor,
                                         StoreOptions options) {
  std::string tag = RandomId("", 20);
  bool postgres = IsPostgresUrl(url);
  if (!postgres) options.node.clear();
  auto open = [url, tag] { return OpenDatabase(url, {.tag = tag}); };
  TRY_ASSIGN(auto first, OpenDatabase(url, {.statement_timeout = kMigrationTimeout}));
  TRY(Migrate(*first));
  if (postgres) {
    TRY_ASSIGN(first, open());  // with the timeouts of every day
  }
  auto store = std::make_unique<SqlStore>(std::move(first), open, executor, options);
  if (postgres) {
    store->Listen([url, tag] { return PostgresDatabase::Open(url, {.tag = tag}); });
  } else {
    TRY_ASSIGN(auto second, open());
    store->StartCheckpoints(std::move(second));
  }
  return store;
}

}  // namespace caisson::store

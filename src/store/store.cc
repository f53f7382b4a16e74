#include "store/store.h"

#include "store/migrations.h"
#include "store/sqlite_store.h"

namespace caisson::store {

Result<std::unique_ptr<Store>> OpenStore(const std::string& url, asio::any_io_executor executor,
                                         StoreOptions options) {
  constexpr std::string_view kSqlite = "sqlite:///";
  if (!url.starts_with(kSqlite))
    return Fail(Code::kInvalidArgument,
                "the database URL must be sqlite:///absolute/path.db; other databases are not "
                "supported yet");
  // "sqlite:////var/x.db" (four slashes, as some libraries write it) is the same path.
  std::string path = "/" + url.substr(kSqlite.size());
  path.erase(
      0, path.find_first_not_of('/') == std::string::npos ? 0 : path.find_first_not_of('/') - 1);
  TRY_ASSIGN(Database database, Database::Open(path));
  TRY(Migrate(database));
  TRY_ASSIGN(Database second, Database::Open(path));
  return std::make_unique<SqliteStore>(std::move(database), std::move(second), std::move(executor),
                                       options);
}

}  // namespace caisson::store

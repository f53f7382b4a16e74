#include "store/open_database.h"

#include "store/sqlite_database.h"

namespace caisson::store {

bool IsPostgresUrl(std::string_view url) {
  return url.starts_with("postgresql://") || url.starts_with("postgres://");
}

Result<std::unique_ptr<Database>> OpenDatabase(const std::string& url, PostgresOptions options) {
  constexpr std::string_view kSqlite = "sqlite:///";
  if (IsPostgresUrl(url)) return PostgresDatabase::Open(url, std::move(options));
  if (!url.starts_with(kSqlite))
    return Fail(Code::kInvalidArgument,
                "the database URL must be sqlite:///absolute/path.db or "
                "postgresql://USER:PASSWORD@HOST/DATABASE");
  // "sqlite:////var/x.db" (four slashes, as some libraries write it) is the same path.
  std::string path = "/" + url.substr(kSqlite.size());
  path.erase(
      0, path.find_first_not_of('/') == std::string::npos ? 0 : path.find_first_not_of('/') - 1);
  return SqliteDatabase::Open(path);
}

bool MayComeUp(const Error& error) {
  if (error.code() != Code::kUnavailable) return false;
  const std::string& text = error.message();
  // What libpq knows of a connection that failed are words.
  if (text.find("FATAL") == text.npos) return true;
  for (const char* passing : {"starting up", "shutting down", "recovery", "too many clients"})
    if (text.find(passing) != text.npos) return true;
  return false;
}

}  // namespace caisson::store

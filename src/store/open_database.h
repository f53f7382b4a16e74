// From a URL to a connection.
#pragma once

#include "store/postgres_database.h"

namespace caisson::store {

bool IsPostgresUrl(std::string_view url);
// "sqlite:///abs/path.db" or "postgresql://..."; kInvalidArgument if it is neither. The options are
// for PostgreSQL.
Result<std::unique_ptr<Database>> OpenDatabase(const std::string& url,
                                               PostgresOptions options = {});

// Whether one that could not be opened may only not be up yet: nobody answers, or PostgreSQL says
// that it is starting. A wrong password or name is something else.
bool MayComeUp(const Error& error);

}  // namespace caisson::store

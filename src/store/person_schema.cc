#include "store/work_schema.h"

namespace caisson::store {

const char* const kPersonSchemaUp = R"sql(
CREATE TABLE user_identities (
  id            TEXT PRIMARY KEY,
  user_id       TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  login         TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  last_used_at  INTEGER NOT NULL
) STRICT;
CREATE TABLE user_preferences (
  id          TEXT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  value       TEXT NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX user_identities_user ON user_identities (user_id);
)sql";

const char* const kPersonSchemaDown = R"sql(
DROP TABLE user_preferences;
DROP TABLE user_identities;
)sql";

}  // namespace caisson::store

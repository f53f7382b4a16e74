#include "store/work_schema.h"

namespace caisson::store {

const char* const kTokenSchemaUp = R"sql(
CREATE TABLE github_tokens (
  id          TEXT PRIMARY KEY,
  user_id     TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  login       TEXT NOT NULL,
  sealed      TEXT NOT NULL,
  created_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX github_tokens_user ON github_tokens (user_id);
)sql";

const char* const kTokenSchemaDown = R"sql(
DROP TABLE github_tokens;
)sql";

}  // namespace caisson::store

#include "store/work_schema.h"

namespace caisson::store {

const char* const kCheckoutSchemaUp = R"sql(
CREATE TABLE kept_checkouts (
  id             TEXT PRIMARY KEY,
  installation   TEXT NOT NULL,
  owner_id       TEXT NOT NULL,
  repository     TEXT NOT NULL,
  template_name  TEXT NOT NULL,
  depth          INTEGER NOT NULL,
  state          TEXT NOT NULL CHECK (state IN ('making', 'ready', 'doomed')),
  snapshot       TEXT NOT NULL,
  bytes          INTEGER NOT NULL,
  uses           INTEGER NOT NULL,
  gap_s          INTEGER NOT NULL,
  made_at        INTEGER NOT NULL,
  last_used_at   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX kept_checkouts_ready
  ON kept_checkouts (installation, owner_id, repository, template_name, depth)
  WHERE state = 'ready';
)sql";

const char* const kCheckoutSchemaDown = "DROP TABLE kept_checkouts;";

}  // namespace caisson::store

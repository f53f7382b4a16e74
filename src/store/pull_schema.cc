#include "store/work_schema.h"

namespace caisson::store {

// Until now they were opened as drafts, and what became of them was not followed.
const char* const kPullSchemaUp = R"sql(
ALTER TABLE sessions ADD COLUMN pull_request_state TEXT NOT NULL DEFAULT '';
UPDATE sessions SET pull_request_state = 'draft' WHERE pull_request_number > 0;
CREATE INDEX sessions_pull_request ON sessions (pull_request_number);
)sql";

const char* const kPullSchemaDown = R"sql(
DROP INDEX sessions_pull_request;
ALTER TABLE sessions DROP COLUMN pull_request_state;
)sql";

}  // namespace caisson::store

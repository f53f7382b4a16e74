#include "store/backup.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"

namespace caisson::store {
namespace {

// VACUUM INTO reads within one transaction and takes an empty file for a new one.
Status Copy(Database& database, const std::string& draft) {
  unlink(draft.c_str());  // of a copy that was cut off
  // SECURITY: made here, so that nobody else can ever read it.
  UniqueFd file(open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return FailErrno("creating {}", draft);
  TRY(database.Run("VACUUM INTO ?", draft));
  if (fsync(file.get())) return FailErrno("writing {}", draft);
  return {};
}

}  // namespace

Status Backup(Database& database, const std::string& file) {
  if (database.kind() != Database::Kind::kSqlite)
    return Fail(Code::kFailedPrecondition,
                "the database is PostgreSQL's: use pg_dump, which copies it while it is in use");
  if (access(file.c_str(), F_OK) == 0)
    return Fail(Code::kAlreadyExists, "{} is there already: name a new file", file);
  std::string draft = file + ".partial";
  Status copied = Copy(database, draft);
  if (copied && renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, file.c_str(), RENAME_NOREPLACE))
    copied = FailErrno("naming the copy {}", file);
  if (!copied) unlink(draft.c_str());
  return copied;
}

}  // namespace caisson::store

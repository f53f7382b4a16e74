// Logs of builds that were moved out of the database: one file of NDJSON each.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "store/build_rows.h"

namespace caisson::build {

// Where they are; "" = old logs are not kept.
std::string LogArchiveOf(const Config& config);

// Whether logs can be put there. A server with PostgreSQL writes no files at all, one with SQLite
// only beside its database.
Status CheckLogArchive(const Config& config);

// The file is whole and on disk when this returns. `lines` are all lines from 0 on.
Status ArchiveLog(const std::string& directory, const std::string& build_id,
                  const std::vector<store::BuildLogRow>& lines);
// The lines from number `from` on that are before number `before`: of those the first `limit`, or
// with `newest` the last. Nothing if there is no such file. Reads a file: call it in a job of the
// store.
Result<std::vector<store::BuildLogRow>> ArchivedLines(const std::string& directory,
                                                      const std::string& build_id, int64_t from,
                                                      int64_t before, int64_t limit, bool newest);

// Of a build that is deleted. That there is none is fine.
void RemoveArchivedLog(const std::string& directory, const std::string& build_id);

}  // namespace caisson::build

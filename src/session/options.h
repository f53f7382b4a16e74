// What a session's options say, where they are silent the server's settings.
#pragma once

#include <map>

#include "base/config.h"
#include "git/repository.h"
#include "store/session_rows.h"

namespace caisson::session {

// Variables of its sandbox.
std::map<std::string, std::string> EnvOf(const store::SessionRow& session);
// Whether each answer that changes files is committed.
bool Commits(const store::SessionRow& session, const Config& config);
// Whether this server may push to the session's repository.
bool CanPush(const store::SessionRow& session, const Config& config);
// Whether the first commit opens a draft pull request.
bool OpensPullRequest(const store::SessionRow& session, const Config& config);
// The branch that its answers are committed to.
std::string BranchFor(const store::SessionRow& session, const Config& config);

}  // namespace caisson::session

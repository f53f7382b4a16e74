// With several servers on one database, a run that has a sandbox goes on at the server that has it.
// Tasks, sessions and builds differ only in which sandboxes a run works in.
#pragma once

#include <functional>
#include <vector>

#include "events/log.h"
#include "flow/definition.h"
#include "store/sandbox_rows.h"

namespace caisson::work {

// Sandboxes of a run that live.
using FindSandboxes = std::function<Result<std::vector<store::WorkSandboxRow>>(
    store::Transaction&, const store::RunRow&)>;

// The living ones that these hold.
Result<std::vector<store::WorkSandboxRow>> SandboxesOf(store::Transaction& tx,
                                                       const std::string& kind,
                                                       std::vector<std::string> holders);

// Sets `home` and `leave` of a definition: a sandbox whose server is lost has ended, and the run
// does what it does when one is gone. Its server ends what is left of it when it comes back.
// `log` outlives the definition.
void SetHome(flow::Definition& definition, const events::Log& log, FindSandboxes find);

}  // namespace caisson::work

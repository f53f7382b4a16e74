// Linux capabilities: what the engine's processes keep of root, and what root inside a sandbox is.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace caisson::engine {

// One bit per CAP_* number.
using CapabilitySet = uint64_t;

// What engine and launchers need; each with its reason in the source.
CapabilitySet EngineCapabilities();
// What processes inside a sandbox can have at most. `nesting` adds what containers inside need.
CapabilitySet SandboxCapabilities(bool nesting);

// Gives up everything of this process but `keep`, the bounding set included. Capabilities that it
// did not have to begin with are not missed here.
Status KeepOnly(CapabilitySet keep);
// Drops from the bounding set alone: effective at the next execve. For a user namespace's root.
Status LimitBoundingSet(CapabilitySet keep);
// Effective = permitted again, after setfsuid(2) took the file capabilities away.
Status RaiseEffective();
// The effective set of this process.
CapabilitySet EffectiveCapabilities();

}  // namespace caisson::engine

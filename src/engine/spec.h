// What the engine accepts. SECURITY: checked here and not only by the server, which is not trusted:
// ids become parts of paths that root writes to.
#pragma once

#include <string_view>

#include "base/error.h"
#include "engine/engine.h"

namespace caisson::engine {

// Of sandboxes and of snapshots: [a-z0-9], at most 64.
bool IsValidId(std::string_view id);
Status CheckSpec(const Spec& spec);

}  // namespace caisson::engine

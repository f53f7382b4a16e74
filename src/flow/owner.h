// Who holds a lease, as text: enough to see on the same machine that its process is gone.
#pragma once

#include <string>

namespace caisson::flow {

// This process, and one engine in it.
std::string MakeOwner();
// True only if the process that `owner` names certainly runs no more: same boot, same process
// namespace, and its pid is free, a zombie's or another program's. Then its leases need not be
// waited for.
bool IsKnownDead(const std::string& owner);

}  // namespace caisson::flow

// Which hosts a file of SSH's known hosts names.
#pragma once

#include <string_view>

namespace caisson::git {

// Whether there is a line for `host` at `port`, or at any: plain, with wildcards, or hashed. What
// keys are good is SSH's to say; this only tells whom not to connect to at all.
bool NamesHost(std::string_view known_hosts, std::string_view host, std::string_view port);

}  // namespace caisson::git

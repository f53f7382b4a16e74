// The certificate authorities sandboxes trust beside their template's own (setting ca_bundle): the
// host's bundle, shown read-only inside, and the variables by which programs find it.
#pragma once

#include <map>
#include <string>

#include "base/config.h"
#include "base/error.h"

namespace caisson::engine {

// Where it is inside.
inline constexpr const char* kCaBundlePath = "/.caisson/ca-certificates.crt";
// In the engine's directory; missing when there is none.
inline constexpr const char* kCaBundleFile = "ca";

// The host's file by the setting: "" for "none", or when "auto" finds none.
std::string FindCaBundle(const Config& config);
// Copies the bundle into the engine's directory, once per content, so that what is shown inside
// never changes under a sandbox. Without a bundle there is no kCaBundleFile afterwards.
Status InstallCaBundle(const Config& config);
// Whether the sandbox of this process was given one: the setting may have changed since.
bool HasCaBundle(int pid);
// Variables for every process inside, for curl, git, pip, node and most others; empty without a
// bundle. Whoever sets one of them keeps what they set.
std::map<std::string, std::string> CaEnvironment(const Config& config);

}  // namespace caisson::engine

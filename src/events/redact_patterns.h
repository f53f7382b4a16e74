// Secrets that nobody told us about, found by how they look.
#pragma once

#include <string>

namespace caisson::events {

// What looks like a secret becomes "[redacted]": KEY=value with a telling name, sk-...,
// pk_live_..., ghp_..., AKIA..., addresses with a password in them.
std::string RedactPatterns(std::string text);
// Whether there is a key of a well-known kind in it, or an address with a password.
bool HoldsToken(const std::string& text);

}  // namespace caisson::events

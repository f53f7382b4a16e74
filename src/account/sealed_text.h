// Texts that only this server can read again: they lie in the store under a key that is made from
// its secret (AES-256-GCM).
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::account {

// `about` says what the text belongs to: put beside something else, it does not open.
Result<std::string> Seal(std::string_view secret, std::string_view about, std::string_view text);
// kDataLoss: it was sealed with another secret or about something else, or it was changed.
Result<std::string> Unseal(std::string_view secret, std::string_view about,
                           std::string_view sealed);

}  // namespace caisson::account

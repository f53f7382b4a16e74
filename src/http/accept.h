// What a client says that it can read.
#pragma once

#include <string_view>

namespace caisson::http {

// True if an Accept-Encoding header names `coding` ("gzip", "br"), and not to refuse it (q=0). Who
// says `*` and no name gets nothing compressed, which is always allowed.
bool AcceptsCoding(std::string_view accept_encoding, std::string_view coding);

}  // namespace caisson::http

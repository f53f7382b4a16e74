// Signatures of /files URLs: how an SDK's downloadUrl() and uploadUrl() prove that their maker knew
// the sandbox's access token. envd checks them; the gateway finds the sandbox by them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::http {

// "v1_" + unpadded base64 of SHA-256 over path:operation:user:token[:expiration]. `operation` is
// "read" or "write"; `expiration` is unix seconds as text, or nothing.
std::string FileSignature(std::string_view path, std::string_view operation, std::string_view user,
                          std::string_view token, std::optional<std::string_view> expiration);

}  // namespace caisson::http

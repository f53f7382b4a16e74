// Text encodings of bytes, and the two hashes we use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson {

std::string HexEncode(std::string_view bytes);

// Standard alphabet (+ and /), with '=' padding.
std::string Base64Encode(std::string_view bytes);
std::string Base64UrlEncode(std::string_view bytes);  // - and _, no padding
// Accepts both alphabets, padded or not, as proto3 JSON asks. nullopt on any other character.
std::optional<std::string> Base64Decode(std::string_view text);

// Percent-decoding; nullopt on a broken escape. `plus_is_space` for query strings.
std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space = false);
// Escapes everything but RFC 3986 unreserved characters.
std::string PercentEncode(std::string_view text);

// Raw 32 bytes.
std::string Sha256(std::string_view data);
// Of texts that begin alike: the beginning is read once.
class Sha256After {
 public:
  explicit Sha256After(std::string_view beginning);
  std::string Of(std::string_view rest) const;  // raw 32 bytes

 private:
  std::string state_;
};
std::string HmacSha256(std::string_view key, std::string_view data);

// Compares without telling by its duration where the difference is.
bool ConstantTimeEqual(std::string_view a, std::string_view b);

}  // namespace caisson

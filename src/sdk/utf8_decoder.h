// Bytes that come in pieces, as text: a character that was cut by the pieces is put together again,
// what is not UTF-8 becomes U+FFFD.
#pragma once

#include <string>
#include <string_view>

namespace caisson::sdk {

class Utf8Decoder {
 public:
  // The whole characters there are now. The beginning of one that is not complete waits.
  std::string Take(std::string_view bytes);
  // What still waits at the end of the input: it will never be a character.
  std::string Finish();

 private:
  std::string waiting_;  // at most 3 bytes
};

// The longest beginning of `text` with at most `size` bytes that does not end within a character.
std::string_view CutUtf8(std::string_view text, size_t size);

}  // namespace caisson::sdk

#include "base/id.h"

#include <sys/random.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/encoding.h"

namespace caisson {

void FillRandom(void* data, size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    ssize_t n = getrandom(at, size, 0);
    if (n <= 0) {
      if (n < 0 && errno == EINTR) continue;
      std::abort();
    }
    at += n;
    size -= static_cast<size_t>(n);
  }
}

std::string RandomId(std::string_view prefix, size_t length) {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr uint8_t kFair = 252;  // 7 × 36: bytes above would favour some letters
  std::string id(prefix);
  while (id.size() < prefix.size() + length) {
    std::array<uint8_t, 32> bytes;
    FillRandom(bytes.data(), bytes.size());
    for (uint8_t b : bytes)
      if (b < kFair && id.size() < prefix.size() + length) id += kAlphabet[b % 36];
  }
  return id;
}

std::string RandomHex(size_t bytes) {
  std::string raw(bytes, '\0');
  FillRandom(raw.data(), raw.size());
  return HexEncode(raw);
}

std::string RandomUuid() {
  std::string hex = RandomHex(16);
  hex[12] = '4';
  constexpr std::string_view kVariant = "89ab";
  hex[16] = kVariant[static_cast<unsigned char>(hex[16]) % 4];
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

}  // namespace caisson

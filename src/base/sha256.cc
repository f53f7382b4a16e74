// SHA-256 through OpenSSL's low-level calls. They are marked deprecated in favour of EVP, but EVP
// drags its whole provider machinery (2 MB) into the static envd; these are the same code.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <array>

#include "base/encoding.h"

namespace caisson {

std::string Sha256(std::string_view data) {
  SHA256_CTX context;
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256_Init(&context);
  SHA256_Update(&context, data.data(), data.size());
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context);
  return digest;
}

std::string HmacSha256(std::string_view key, std::string_view data) {
  constexpr size_t kBlock = 64;
  std::string padded = key.size() > kBlock ? Sha256(key) : std::string(key);
  padded.resize(kBlock, '\0');
  std::string inner = padded, outer = padded;
  for (char& c : inner) c ^= 0x36;
  for (char& c : outer) c ^= 0x5c;
  inner.append(data);
  outer.append(Sha256(inner));
  return Sha256(outer);
}

}  // namespace caisson

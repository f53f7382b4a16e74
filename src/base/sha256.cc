// SHA-256 through OpenSSL's low-level calls. They are marked deprecated in favour of EVP, but EVP
// drags its whole provider machinery (2 MB) into the static envd; these are the same code.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <cstring>

#include "base/encoding.h"

namespace caisson {

std::string Sha256(std::string_view data) { return Sha256After("").Of(data); }

Sha256After::Sha256After(std::string_view beginning) : state_(sizeof(SHA256_CTX), '\0') {
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, beginning.data(), beginning.size());
  std::memcpy(state_.data(), &context, sizeof(context));
}

std::string Sha256After::Of(std::string_view rest) const {
  SHA256_CTX context;
  std::memcpy(&context, state_.data(), sizeof(context));
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256_Update(&context, rest.data(), rest.size());
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

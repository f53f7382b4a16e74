#include "account/sealed_text.h"

#include <openssl/evp.h>

#include <memory>

#include "base/encoding.h"
#include "base/id.h"

namespace caisson::account {
namespace {

constexpr size_t kNonce = 12, kTag = 16;
constexpr std::string_view kForm = "1:";  // how it is sealed, should there ever be another way

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

// SECURITY: a key of its own, so that nothing else made from the secret opens a text.
std::string KeyOf(std::string_view secret) { return HmacSha256(secret, "account:sealed"); }

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

Error Broken() { return {Code::kInternal, "the text could not be sealed"}; }
Error Foreign() { return {Code::kDataLoss, "it was sealed with another secret, or changed"}; }

}  // namespace

// SECURITY: the nonce is random; a key seals far fewer texts than the 2^32 that allows.
Result<std::string> Seal(std::string_view secret, std::string_view about, std::string_view text) {
  std::string key = KeyOf(secret), nonce(kNonce, '\0'), sealed(text.size(), '\0'), tag(kTag, '\0');
  FillRandom(nonce.data(), nonce.size());
  Cipher cipher(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int length = 0;
  if (!cipher ||
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(nonce)) != 1 ||
      EVP_EncryptUpdate(cipher.get(), nullptr, &length, Bytes(about),
                        static_cast<int>(about.size())) != 1 ||
      EVP_EncryptUpdate(cipher.get(), Bytes(sealed), &length, Bytes(text),
                        static_cast<int>(text.size())) != 1 ||
      EVP_EncryptFinal_ex(cipher.get(), Bytes(sealed) + length, &length) != 1 ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTag, tag.data()) != 1)
    return tl::unexpected(Broken());
  return std::string(kForm) + Base64Encode(nonce + tag + sealed);
}

Result<std::string> Unseal(std::string_view secret, std::string_view about,
                           std::string_view sealed) {
  if (!sealed.starts_with(kForm)) return tl::unexpected(Foreign());
  auto bytes = Base64Decode(sealed.substr(kForm.size()));
  if (!bytes || bytes->size() < kNonce + kTag) return tl::unexpected(Foreign());
  std::string key = KeyOf(secret), tag = bytes->substr(kNonce, kTag);
  std::string_view hidden = std::string_view(*bytes).substr(kNonce + kTag);
  std::string text(hidden.size(), '\0');
  Cipher cipher(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int length = 0;
  if (!cipher ||
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(*bytes)) !=
          1 ||
      EVP_DecryptUpdate(cipher.get(), nullptr, &length, Bytes(about),
                        static_cast<int>(about.size())) != 1 ||
      EVP_DecryptUpdate(cipher.get(), Bytes(text), &length, Bytes(hidden),
                        static_cast<int>(hidden.size())) != 1 ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTag, tag.data()) != 1 ||
      EVP_DecryptFinal_ex(cipher.get(), Bytes(text) + length, &length) != 1)
    return tl::unexpected(Foreign());
  return text;
}

}  // namespace caisson::account

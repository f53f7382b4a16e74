#include "forge/app_token.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <boost/json.hpp>
#include <memory>

#include "base/encoding.h"

namespace caisson::forge {
namespace {

namespace json = boost::json;

template <auto kFree>
struct Freeing {
  void operator()(auto* one) const { kFree(one); }
};
using Key = std::unique_ptr<EVP_PKEY, Freeing<EVP_PKEY_free>>;
using Bio = std::unique_ptr<BIO, Freeing<BIO_free_all>>;
using Digest = std::unique_ptr<EVP_MD_CTX, Freeing<EVP_MD_CTX_free>>;

// A key with a passphrase is refused instead of asked for.
int NoPassphrase(char*, int, int, void*) { return -1; }

Result<std::string> Sign(std::string_view key_text, std::string_view text) {
  Bio source(BIO_new_mem_buf(key_text.data(), static_cast<int>(key_text.size())));
  Key key(PEM_read_bio_PrivateKey(source.get(), nullptr, NoPassphrase, nullptr));
  if (!key || EVP_PKEY_base_id(key.get()) != EVP_PKEY_RSA)
    return Fail(Code::kInvalidArgument,
                "The key file of the GitHub App holds no RSA private key in PEM form.");
  Digest digest(EVP_MD_CTX_new());
  size_t size = 0;
  auto bytes = reinterpret_cast<const unsigned char*>(text.data());
  if (EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(digest.get(), nullptr, &size, bytes, text.size()) != 1)
    return Fail(Code::kInternal, "The key of the GitHub App cannot sign.");
  std::string signature(size, '\0');
  if (EVP_DigestSign(digest.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes,
                     text.size()) != 1)
    return Fail(Code::kInternal, "The key of the GitHub App cannot sign.");
  signature.resize(size);
  return signature;
}

}  // namespace

Result<std::string> MakeAppClaim(std::string_view key, std::string_view app_id, Time now) {
  // A minute back, so that a clock that is a little ahead of GitHub's does no harm.
  int64_t issued = UnixSeconds(now) - 60;
  json::object claim{{"iat", issued}, {"exp", issued + 600}, {"iss", app_id}};
  std::string text = Base64UrlEncode(R"({"alg":"RS256","typ":"JWT"})") + "." +
                     Base64UrlEncode(json::serialize(claim));
  TRY_ASSIGN(std::string signature, Sign(key, text));
  return text + "." + Base64UrlEncode(signature);
}

Result<AppToken> ReadAppToken(std::string_view body) {
  boost::system::error_code ec;
  json::value value = json::parse({body.data(), body.size()}, ec);
  const json::object* object = ec ? nullptr : value.if_object();
  const json::value* token = object ? object->if_contains("token") : nullptr;
  const json::value* end = object ? object->if_contains("expires_at") : nullptr;
  if (!token || !token->is_string() || !end || !end->is_string())
    return Fail(Code::kUnavailable, "GitHub's answer to the request for a token is not readable.");
  TRY_ASSIGN(Time expires_at, ParseTime(std::string_view(end->get_string())));
  return AppToken{std::string(token->get_string()), expires_at};
}

}  // namespace caisson::forge

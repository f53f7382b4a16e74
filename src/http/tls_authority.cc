// EnsureLocalAuthority: a certificate authority for this machine only.
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "http/tls.h"

namespace caisson::http {
namespace {

constexpr long kDay = 24 * 60 * 60;
constexpr long kAuthorityDays = 3650;
constexpr long kServerDays = 397;  // the most that browsers accept
constexpr long kRenewDays = 30;
constexpr unsigned kSecretMode = 0600;
constexpr unsigned kPublicMode = 0644;

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Cert = std::unique_ptr<X509, Free<X509_free>>;
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;

struct Identity {
  Cert cert;
  Key key;
};

tl::unexpected<Error> OpensslFail(std::string_view doing) {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  ERR_clear_error();
  return Fail(Code::kInternal, "{}: {}", doing, reason ? reason : "unknown reason");
}

// ---- files ---------------------------------------------------------------------

template <class Write>
std::string ToPem(Write write) {
  Bio bio(BIO_new(BIO_s_mem()));
  write(bio.get());
  char* data = nullptr;
  long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

Status Save(const Identity& identity, const std::string& cert_file, const std::string& key_file) {
  std::string key = ToPem([&](BIO* bio) {
    PEM_write_bio_PrivateKey(bio, identity.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  std::string cert = ToPem([&](BIO* bio) { PEM_write_bio_X509(bio, identity.cert.get()); });
  // A crash in between leaves a pair that does not match, which Load() notices.
  TRY(WriteFileAtomic(key_file, key, kSecretMode));
  return WriteFileAtomic(cert_file, cert, kPublicMode);
}

// Nothing if a file is missing, unreadable or does not fit the other: then a new pair is made.
std::optional<Identity> Load(const std::string& cert_file, const std::string& key_file) {
  auto cert_text = ReadFile(cert_file);
  auto key_text = ReadFile(key_file);
  if (!cert_text || !key_text) return std::nullopt;
  Bio cert_bio(BIO_new_mem_buf(cert_text->data(), static_cast<int>(cert_text->size())));
  Bio key_bio(BIO_new_mem_buf(key_text->data(), static_cast<int>(key_text->size())));
  Identity identity{Cert(PEM_read_bio_X509(cert_bio.get(), nullptr, nullptr, nullptr)),
                    Key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr))};
  bool usable = identity.cert && identity.key &&
                X509_check_private_key(identity.cert.get(), identity.key.get()) == 1;
  ERR_clear_error();
  if (!usable) return std::nullopt;
  return identity;
}

// ---- certificates --------------------------------------------------------------

bool EndsSoon(X509* cert) {
  time_t soon = time(nullptr) + kRenewDays * kDay;
  return X509_cmp_time(X509_get0_notAfter(cert), &soon) <= 0;
}

std::vector<std::string> ServerNames(const std::string& domain) {
  std::vector<std::string> names = {"DNS:" + domain, "DNS:*." + domain, "DNS:api." + domain};
  if (domain != "localhost") names.push_back("DNS:localhost");
  names.push_back("IP:127.0.0.1");
  names.push_back("IP:::1");
  return names;
}

// The names of a certificate, in the spelling of ServerNames().
std::set<std::string> NamesOf(X509* cert) {
  std::set<std::string> names;
  auto* list =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(cert, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(list); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(list, i);
    const ASN1_STRING* text = name->type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
    std::string value(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                      static_cast<size_t>(ASN1_STRING_length(text)));
    if (name->type == GEN_DNS) {
      names.insert("DNS:" + value);
    } else if (name->type == GEN_IPADD) {
      names.insert(value.size() == 4 ? "IP:127.0.0.1" : "IP:::1");
    }
  }
  GENERAL_NAMES_free(list);
  return names;
}

bool Fits(const Identity& server, const Identity& authority, const std::string& domain) {
  auto wanted = ServerNames(domain);
  return !EndsSoon(server.cert.get()) &&
         X509_verify(server.cert.get(), X509_get0_pubkey(authority.cert.get())) == 1 &&
         NamesOf(server.cert.get()) == std::set<std::string>(wanted.begin(), wanted.end());
}

struct Extension {
  int nid;
  std::string value;
};

// Makes a key and a certificate for it, signed by `issuer` or by itself.
Result<Identity> Issue(const std::string& common_name, long days, const Identity* issuer,
                       const std::vector<Extension>& extensions) {
  Identity made{Cert(X509_new()), Key(EVP_EC_gen("P-256"))};
  X509* cert = made.cert.get();
  if (!cert || !made.key) return OpensslFail("making a TLS key");
  X509* issuer_cert = issuer ? issuer->cert.get() : cert;

  unsigned char serial[16];
  FillRandom(serial, sizeof(serial));
  serial[0] &= 0x7f;  // positive
  BIGNUM* number = BN_bin2bn(serial, sizeof(serial), nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
  BN_free(number);
  X509_set_version(cert, X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(cert), -60 * 60);  // clocks differ
  X509_gmtime_adj(X509_getm_notAfter(cert), days * kDay);
  X509_set_pubkey(cert, made.key.get());

  X509_NAME* subject = X509_get_subject_name(cert);
  auto add = [&](const char* field, const std::string& value) {
    X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1, 0);
  };
  add("O", "Caisson");
  add("CN", common_name);
  X509_set_issuer_name(cert, X509_get_subject_name(issuer_cert));

  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer_cert, cert, nullptr, nullptr, 0);
  for (const auto& [nid, value] : extensions) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
    if (!extension) return OpensslFail("making a TLS certificate");
    X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
  }
  EVP_PKEY* signer = issuer ? issuer->key.get() : made.key.get();
  if (X509_sign(cert, signer, EVP_sha256()) == 0) return OpensslFail("signing a TLS certificate");
  return made;
}

// SECURITY: who has trusted it, and loses its key to somebody, has lost these names and no other.
std::string Constraints(const std::string& domain) {
  std::string text = "critical,permitted;DNS:" + domain;
  if (domain != "localhost") text += ",permitted;DNS:localhost";
  return text +
         ",permitted;IP:127.0.0.1/255.255.255.255"
         ",permitted;IP:::1/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
}

bool IsConstrainedTo(X509* cert, const std::string& domain) {
  using Extensions = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;
  std::string wanted_text = Constraints(domain);
  Extensions wanted(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_name_constraints, wanted_text.c_str()));
  int at = X509_get_ext_by_NID(cert, NID_name_constraints, -1);
  if (!wanted || at < 0) return false;
  return ASN1_OCTET_STRING_cmp(X509_EXTENSION_get_data(X509_get_ext(cert, at)),
                               X509_EXTENSION_get_data(wanted.get())) == 0;
}

Result<Identity> IssueAuthority(const std::string& domain) {
  // pathlen 0: it can sign servers, not further authorities.
  return Issue("Caisson local authority " + RandomHex(4), kAuthorityDays, nullptr,
               {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                {NID_key_usage, "critical,keyCertSign,cRLSign"},
                {NID_name_constraints, Constraints(domain)},
                {NID_subject_key_identifier, "hash"}});
}

Result<Identity> IssueServer(const std::string& domain, const Identity& authority) {
  std::string names;
  for (const std::string& name : ServerNames(domain)) names += (names.empty() ? "" : ",") + name;
  return Issue(domain, kServerDays, &authority,
               {{NID_basic_constraints, "critical,CA:FALSE"},
                {NID_key_usage, "critical,digitalSignature"},
                {NID_ext_key_usage, "serverAuth"},
                {NID_subject_alt_name, names},
                {NID_subject_key_identifier, "hash"},
                {NID_authority_key_identifier, "keyid"}});
}

// SECURITY: the name becomes part of OpenSSL's extension syntax.
Status CheckDomain(const std::string& domain) {
  bool clean = !domain.empty() && domain.size() <= 200 &&
               std::all_of(domain.begin(), domain.end(), [](char c) {
                 return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
               });
  if (clean && domain.front() != '.' && domain.back() != '.') return {};
  return Fail(Code::kInvalidArgument, "\"{}\" is not a domain name a certificate can be made for",
              domain);
}

}  // namespace

Result<LocalAuthority> EnsureLocalAuthority(const std::string& dir, const std::string& domain) {
  std::string name = ToLower(domain.substr(0, domain.find(':')));  // a port is no part of it
  TRY(CheckDomain(name));
  if (mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST)
    return FailErrno("making the folder {}", dir);
  LocalAuthority files{dir + "/ca.pem", dir + "/server.pem", dir + "/server.key"};
  const std::string authority_key_file = dir + "/ca.key";

  auto authority = Load(files.ca_file, authority_key_file);
  if (!authority || EndsSoon(authority->cert.get()) ||
      !IsConstrainedTo(authority->cert.get(), name)) {
    TRY_ASSIGN(authority, IssueAuthority(name));
    TRY(Save(*authority, files.ca_file, authority_key_file));
    LogInfo("made a new local certificate authority; clients must trust it",
            {{"file", files.ca_file}});
  }
  auto server = Load(files.cert_file, files.key_file);
  if (!server || !Fits(*server, *authority, name)) {
    TRY_ASSIGN(server, IssueServer(name, *authority));
    TRY(Save(*server, files.cert_file, files.key_file));
  }
  return files;
}

}  // namespace caisson::http

#include "engine/trust.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/encoding.h"
#include "base/file.h"
#include "base/id.h"

namespace caisson::engine {
namespace {

constexpr size_t kMaxBundle = 16 << 20;

}  // namespace

std::string FindCaBundle(const Config& config) {
  if (config.ca_bundle == "none") return "";
  if (config.ca_bundle != "auto") return config.ca_bundle;
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"})
    if (access(path, R_OK) == 0) return path;
  return "";
}

Status InstallCaBundle(const Config& config) {
  std::string source = FindCaBundle(config);
  if (source.empty()) {
    if (unlink(kCaBundleFile) && errno != ENOENT) return FailErrno("removing the CA bundle");
    return {};
  }
  auto bundle = ReadFile(source, kMaxBundle);
  if (!bundle) return tl::unexpected(std::move(bundle).error().Context("setting ca_bundle"));
  if (bundle->find("-----BEGIN CERTIFICATE-----") == std::string::npos)
    return Fail(Code::kInvalidArgument, "setting ca_bundle: {} has no certificate in it", source);
  std::string dir = "ca-" + HexEncode(Sha256(*bundle)).substr(0, 16);
  std::string path = dir + "/ca-certificates.crt";
  if (mkdir(dir.c_str(), 0755) && errno != EEXIST) return FailErrno("creating {}", dir);
  if (access(path.c_str(), F_OK)) TRY(WriteFileAtomic(path, *bundle, 0444));
  std::string temporary = "ca." + RandomHex(4) + ".tmp";
  if (symlink(path.c_str(), temporary.c_str()) || rename(temporary.c_str(), kCaBundleFile))
    return FailErrno("installing the CA bundle");
  return {};
}

bool HasCaBundle(int pid) {
  auto mounts = ReadFile(fmt::format("/proc/{}/mountinfo", pid));
  return mounts && mounts->find(fmt::format(" {} ", kCaBundlePath)) != std::string::npos;
}

std::map<std::string, std::string> CaEnvironment(const Config& config) {
  std::map<std::string, std::string> environment;
  if (FindCaBundle(config).empty()) return environment;
  for (const char* name :
       {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT",
        "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO", "DENO_CERT"})
    environment[name] = kCaBundlePath;
  return environment;
}

}  // namespace caisson::engine

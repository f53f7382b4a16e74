#include "work/preview_url.h"

namespace caisson::work {

std::string PreviewUrl(const sandbox::Provider& provider, const Config& config,
                       uint16_t server_port, const std::string& backend_id, uint16_t port) {
  std::string host = provider.Host(backend_id, port);
  if (provider.name() != "local") return "https://" + host;
  bool tls = config.tls != "off";
  // A domain that names a port is a proxy's.
  bool plain = server_port == (tls ? 443 : 80) || config.domain.find(':') != std::string::npos;
  return fmt::format("{}://{}{}", tls ? "https" : "http", host,
                     plain ? "" : fmt::format(":{}", server_port));
}

}  // namespace caisson::work

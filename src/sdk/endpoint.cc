#include "sdk/endpoint.h"

#include "http/tls.h"

namespace caisson::sdk {

Result<Endpoint> Endpoint::Parse(std::string url, std::string ca_file) {
  while (url.ends_with('/')) url.pop_back();
  Endpoint endpoint{.url = url, .tls = url.starts_with("https://"), .ca_file = std::move(ca_file)};
  size_t scheme = url.find("://");
  if (scheme != std::string::npos) endpoint.host_port = url.substr(scheme + 3);
  if ((!endpoint.tls && !url.starts_with("http://")) || endpoint.host_port.empty() ||
      endpoint.host_port.find('/') != std::string::npos)
    return Fail(Code::kInvalidArgument,
                "'{}' is not the address of a server, for example http://127.0.0.1:8000", url);
  bool has_port =
      endpoint.host_port.find(':', endpoint.host_port.rfind(']') + 1) != std::string::npos;
  if (!has_port) endpoint.host_port += endpoint.tls ? ":443" : ":80";
  return endpoint;
}

std::string Endpoint::Host() const { return host_port.substr(0, host_port.rfind(':')); }

Task<Result<std::unique_ptr<http::ClientConnection>>> Endpoint::Connect(
    std::chrono::milliseconds timeout, http::ClientOptions options) const {
  return tls ? http::ConnectTls(host_port, ca_file, timeout, options)
             : http::ClientConnection::Connect(host_port, timeout, options);
}

}  // namespace caisson::sdk

// TLS: for the server with certificate files or a local authority made once; for clients.
#pragma once

#include <memory>
#include <string>

#include "http/client.h"
#include "http/dial.h"
#include "http/server.h"

namespace caisson::http {

// A factory for Server from PEM files. Fails with a sentence that names the file.
Result<StreamFactory> TlsFromFiles(const std::string& cert_file, const std::string& key_file,
                                   std::chrono::milliseconds handshake_timeout);

// Connects to "host:port" and checks that the server's certificate is for that host, made by one of
// the system's authorities ($SSL_CERT_FILE names others) or by one in `ca_file`, if not "". A
// certificate that is not accepted is kFailedPrecondition with OpenSSL's reason. `check` as in
// Dial(); with `dialled`, another "host:port", that is where it connects to.
Task<Result<std::unique_ptr<ClientConnection>>> ConnectTls(
    std::string host_port, std::string ca_file, std::chrono::milliseconds timeout,
    ClientOptions options = {}, AddressCheck check = {}, std::string dialled = "");

// TLS over a connected socket, to whoever is there: for servers inside sandboxes, whose
// certificates nobody has made for us to check. The bytes never leave this machine.
Task<Result<std::unique_ptr<Stream>>> StartUncheckedTls(UniqueFd socket,
                                                        std::chrono::milliseconds timeout);

struct LocalAuthority {
  std::string ca_file;    // what a client has to trust
  std::string cert_file;  // for `domain`, *.`domain`, api.`domain`, localhost, 127.0.0.1, ::1
  std::string key_file;
};
// Makes (once) or reuses a CA and a server certificate in `dir`; keys have mode 0600. Renews the
// server certificate when it does not fit `domain` or ends within 30 days.
Result<LocalAuthority> EnsureLocalAuthority(const std::string& dir, const std::string& domain);

}  // namespace caisson::http

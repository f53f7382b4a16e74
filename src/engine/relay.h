// The way out through a SOCKS5 proxy (setting egress_proxy): a process without rights that takes
// the TCP connections of sandboxes, which the firewall leads to it, and makes each anew through the
// proxy. Programs inside need to know nothing of it, and never see its password.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>

#include "base/error.h"
#include "engine/slot.h"

namespace caisson::engine {

struct ProxySettings {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::string username, password;  // both "" = the proxy wants none
};
// "[USER:PASSWORD@]HOST:PORT"; a name is looked up now. kInvalidArgument if it is something else.
// SECURITY: the error never repeats the text, which may hold a password.
Result<ProxySettings> ParseProxy(const std::string& setting);

// ---- RFC 1928 and 1929, for the relay and its tests
std::string SocksGreeting(const ProxySettings& proxy);
std::string SocksLogin(const ProxySettings& proxy);
std::string SocksConnect(const sockaddr_in& destination);
// How long the proxy's answer to a connect request is, by its first bytes; 0 = not known yet.
size_t SocksAnswerSize(std::string_view answer);

// The main function of the process. `listener`: a listening socket in the network namespace where
// connections were redirected. Only those of `sandboxes` are served. Ends when `engine` closes.
int RunRelay(const ProxySettings& proxy, const Cidr& sandboxes, int listener, int engine);

}  // namespace caisson::engine

// caisson-net: see net_process.h.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cstdio>
#include <string>

#include "engine/net_process.h"
#include "engine/relay.h"
#include "engine/resolver.h"

namespace caisson::engine {
namespace {

constexpr int kPatienceMs = 60'000;

Result<Message> ReceiveSettings() {
  pollfd item{kNetSocket, POLLIN, 0};
  if (poll(&item, 1, kPatienceMs) != 1)
    return Fail(Code::kDeadlineExceeded, "nobody says what there is to do");
  return Receive(kNetSocket);
}

Result<int> Resolve(Message& message) {
  ResolverSettings settings;
  TRY_ASSIGN(std::string dns, GetString(message.head, "dns"));
  TRY_ASSIGN(settings.queries_per_second, GetInt(message.head, "queries_per_second"));
  TRY_ASSIGN(settings.nameservers, FindNameservers(dns, kResolvConf));
  if (message.fds.size() != 4) return Fail(Code::kInvalidArgument, "sockets are missing");
  ResolverSockets sockets{std::move(message.fds[0]), std::move(message.fds[1]),
                          std::move(message.fds[2]), std::move(message.fds[3])};
  TRY(ConfineNetProgram(message));
  return RunResolver(settings, sockets, kNetSocket);
}

Result<int> RelayConnections(Message& message) {
  TRY_ASSIGN(std::string text, GetString(message.head, "proxy"));
  TRY_ASSIGN(ProxySettings proxy, ParseProxy(text));
  TRY_ASSIGN(std::string network, GetString(message.head, "sandboxes"));
  TRY_ASSIGN(Cidr sandboxes, ParseCidr(network));
  if (message.fds.size() != 1) return Fail(Code::kInvalidArgument, "a socket is missing");
  TRY(ConfineNetProgram(message));
  return RunRelay(proxy, sandboxes, message.fds[0].get(), kNetSocket);
}

Result<int> Run() {
  IgnoreSignals();
  TRY_ASSIGN(Message message, ReceiveSettings());
  TRY_ASSIGN(std::string role, GetString(message.head, "role"));
  prctl(PR_SET_NAME, role.c_str());
  if (role == kResolverRole) return Resolve(message);
  if (role == kRelayRole) return RelayConnections(message);
  return Fail(Code::kInvalidArgument, "there is no role '{}'", role);
}

}  // namespace
}  // namespace caisson::engine

int main() {
  struct stat info;
  if (fstat(caisson::engine::kNetSocket, &info) || !S_ISSOCK(info.st_mode)) {
    fputs("caisson-net is started by caisson serve.\n", stderr);
    return 2;
  }
  auto ended = caisson::engine::Run();
  if (ended) return *ended;
  fprintf(stderr, "caisson-net: %s\n", ended.error().message().c_str());
  return 1;
}

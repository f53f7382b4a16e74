// How headers change on their way through the gateway.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "http/message.h"

namespace caisson::gateway {

// A request that asks to leave HTTP (a WebSocket, mostly).
bool IsUpgrade(const http::RequestHead& request);

struct Passage {
  std::string peer_address;       // of the client
  bool tls = false;               // the client came by TLS
  std::string mask_request_host;  // replaces Host if not empty; "${PORT}" stands for the port
  uint16_t port = 0;
  bool to_envd = false;
  bool to_tls = false;      // the server in the sandbox speaks TLS
  bool own_origin = false;  // the client asked this server's own host, where the board is, too
  // What clients prove themselves with, and what envd wants in its place (secrets.h); "" = none.
  std::string access_token = {};
  std::string inside_token = {};
  std::function<bool(std::string_view)> is_our_key = {};  // GatewayOptions
};

// The request as the sandbox shall see it: without what concerns only this connection, without the
// keys and cookies of this server, with X-Forwarded-*. A good access token, or a good signature of
// a /files URL, is exchanged for the one that envd takes; no other token goes to envd. Host and the
// rest of the target stay.
http::RequestHead ForSandbox(http::RequestHead request, const Passage& passage);

// The response as the client shall see it. Framing is left to whoever sends it.
void ForClient(http::Headers& headers, bool keep_upgrade);

// SECURITY: a file of a sandbox that is shown under this server's own name must not run there: its
// scripts would be the board's.
void DistrustContent(http::Headers& headers);

// Lets pages of any origin use envd: it is protected by tokens, never by cookies.
void AllowAnyOrigin(http::Headers& headers);
bool IsPreflight(const http::RequestHead& request);
http::Response AnswerPreflight(const http::RequestHead& request);

}  // namespace caisson::gateway

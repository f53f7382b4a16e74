// Who may reach the editor of a sandbox. Its port is private whatever the sandbox says of the
// others: a program gets in with the traffic token, a browser with a pass. A pass comes as a part
// of the address, is good for a minute then, and becomes a cookie of that one host.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "http/message.h"

namespace caisson::gateway {

// The name of the part of the query, and of the cookie. StripSecrets() (headers.cc) keeps it from
// the sandbox.
inline constexpr std::string_view kEditorPass = "caisson_editor";
inline constexpr std::chrono::seconds kEditorAddressTime{60};

// "1790000000.<signature>", good until then. `traffic_token` is that of the sandbox: derived from
// the server's secret, so a pass survives a restart and opens no other sandbox.
std::string MakeEditorPass(std::string_view traffic_token, uint16_t port, Time until);
bool IsEditorPass(std::string_view pass, std::string_view traffic_token, uint16_t port, Time now);

// To a request for "/" with a good pass in its query: the cookie, and the way to the editor.
std::optional<http::Response> AcceptEditorPass(const http::RequestHead& request,
                                               std::string_view traffic_token, uint16_t port,
                                               std::chrono::seconds lifetime, bool tls);
// Whether the request has the traffic token, or the cookie and comes from the editor's own page.
bool MayUseEditor(const http::RequestHead& request, std::string_view traffic_token, uint16_t port);

}  // namespace caisson::gateway

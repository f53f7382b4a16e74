// What the gateway answers by itself: JSON for programs, a small page for people.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "http/message.h"

namespace caisson::gateway {

struct Problem {
  unsigned status = 502;
  std::string sandbox_id;
  std::string title;      // of the page
  std::string message;    // of the JSON
  uint16_t port = 0;      // part of the answer if not 0
  bool may_pass = false;  // the page reloads itself: the port may open soon
};

Problem SandboxNotFound(std::string sandbox_id);
Problem PortClosed(std::string sandbox_id, uint16_t port);
Problem NoTrafficToken(std::string sandbox_id, bool wrong);
// The editor's port, which is never public.
Problem NoEditorPass(std::string sandbox_id, uint16_t port);
// A paused sandbox that traffic could wake, if it had the right token.
Problem NotAllowedToWake(std::string sandbox_id);
// The host's disk is nearly full, and it filled it.
Problem StandsStill(std::string sandbox_id);
Problem TooManyRequests(std::string sandbox_id);
// The sandbox is paused and could not be woken.
Problem CannotWake(std::string sandbox_id, const Error& error);
// `reason` is a whole sentence.
Problem NoAnswer(std::string sandbox_id, std::string reason);

// True for a person's page load; false for programs and for fetch() calls of a page, which want
// JSON.
bool WantsPage(const http::RequestHead& request);
// A browser's preflight is answered well: only then may a script in a page see the problem.
http::Response Render(const Problem& problem, const http::RequestHead& request);

}  // namespace caisson::gateway

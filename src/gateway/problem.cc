#include "gateway/problem.h"

#include "base/text.h"
#include "gateway/headers.h"

namespace caisson::gateway {
namespace {

// Everything that goes in is our own text or [a-z0-9], so nothing needs escaping. There is no
// doctype because programs recognize E2B's pages by their first and last characters.
constexpr std::string_view kPage = R"(<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">{refresh}
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --bg: #f6f7f9; --card: #fff; --fg: #1b2430; --dim: #5b6776;
  --line: #dfe3e8; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --bg: #12161c; --card: #1a2028; --fg: #e6eaf0; --dim: #94a0b0; --line: #2b333e; }}
}}
body {{ margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--bg);
  color: var(--fg); font: 16px/1.5 system-ui, sans-serif; }}
main {{ max-width: 32rem; margin: 1.5rem; padding: 2rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 12px; }}
h1 {{ margin: 0 0 .5rem; font-size: 1.25rem; }}
p {{ margin: .5rem 0; color: var(--dim); }}
code {{ font: .9em ui-monospace, monospace; color: var(--fg); overflow-wrap: anywhere; }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{hint}</p>
<p>Sandbox <code>{sandbox}</code>{port}</p>
</main>
</body>
</html>)";

constexpr std::string_view kEditor = "Editor Is Private";

std::string Hint(const Problem& problem) {
  if (problem.may_pass)
    return fmt::format(
        "There is no service running on port <code>{}</code> of this sandbox. Start one; this page "
        "looks again every two seconds.",
        problem.port);
  if (problem.title == kEditor)
    return "The editor of a sandbox is open only to its owner. Open it from the board.";
  if (problem.status == 403 && problem.title != "Sandbox Paused")
    return "This sandbox takes traffic only with its access token in the header "
           "<code>e2b-traffic-access-token</code>.";
  if (problem.message == "The sandbox was not found")
    return "It has ended, or it never existed on this server.";
  if (problem.status == 429 || problem.status == 503) return problem.message + ".";
  return problem.message + ". Programs inside may be overloaded or stopped.";
}

http::Response Page(const Problem& problem) {
  std::string page = fmt::format(
      fmt::runtime(kPage), fmt::arg("title", problem.title), fmt::arg("hint", Hint(problem)),
      fmt::arg("sandbox", problem.sandbox_id),
      fmt::arg("port", problem.port ? fmt::format(", port <code>{}</code>", problem.port) : ""),
      fmt::arg("refresh", problem.may_pass ? "\n<meta http-equiv=\"refresh\" content=\"2\">" : ""));
  http::Response response = http::Response::Html(problem.status, std::move(page));
  response.headers.Set("Content-Security-Policy",
                       "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
                       "form-action 'none'; frame-ancestors *");
  return response;
}

}  // namespace

Problem SandboxNotFound(std::string sandbox_id) {
  return {.sandbox_id = std::move(sandbox_id),
          .title = "Sandbox Not Found",
          .message = "The sandbox was not found"};
}

Problem PortClosed(std::string sandbox_id, uint16_t port) {
  return {.sandbox_id = std::move(sandbox_id),
          .title = "Closed Port Error",
          .message = "The sandbox is running but port is not open",
          .port = port,
          .may_pass = true};
}

Problem NoTrafficToken(std::string sandbox_id, bool wrong) {
  Problem problem{.status = 403, .sandbox_id = std::move(sandbox_id)};
  problem.title = wrong ? "Invalid Traffic Access Token" : "Missing Traffic Access Token";
  problem.message = "Sandbox is secured with traffic access token. ";
  problem.message += wrong ? "Provided token in header 'e2b-traffic-access-token' is invalid"
                           : "Token header 'e2b-traffic-access-token' is missing";
  return problem;
}

Problem NoEditorPass(std::string sandbox_id, uint16_t port) {
  return {.status = 403,
          .sandbox_id = std::move(sandbox_id),
          .title = std::string(kEditor),
          .message =
              "The editor of a sandbox needs a pass: open it from the board, or with POST "
              "/api/v1/sandboxes/{id}/editor",
          .port = port};
}

Problem NotAllowedToWake(std::string sandbox_id) {
  return {
      .status = 403,
      .sandbox_id = std::move(sandbox_id),
      .title = "Sandbox Paused",
      .message = "The sandbox is paused and only a request with a valid access token resumes it"};
}

Problem StandsStill(std::string sandbox_id) {
  return {.status = 503,
          .sandbox_id = std::move(sandbox_id),
          .title = "Sandbox Stands Still",
          .message =
              "The disk of the server is nearly full, and this sandbox filled it fastest: it "
              "stands still until there is room again"};
}

Problem TooManyRequests(std::string sandbox_id) {
  return {.status = 429,
          .sandbox_id = std::move(sandbox_id),
          .title = "Too Many Requests",
          .message = "Too many requests and connections into sandboxes are open; try again later"};
}

Problem CannotWake(std::string sandbox_id, const Error& error) {
  switch (error.code()) {
    case Code::kNotFound:
      return SandboxNotFound(std::move(sandbox_id));
    case Code::kPermissionDenied:
      return NotAllowedToWake(std::move(sandbox_id));
    case Code::kAborted:
    case Code::kFailedPrecondition:
      return {.status = 409,
              .sandbox_id = std::move(sandbox_id),
              .title = "Sandbox Is Changing State",
              .message = "The sandbox is still being paused or resumed"};
    case Code::kResourceExhausted:
    case Code::kUnavailable:
      return {.status = 429,
              .sandbox_id = std::move(sandbox_id),
              .title = "No Room",
              .message = "The sandbox is paused and there is no room to resume it now"};
    default:
      return {.sandbox_id = std::move(sandbox_id),
              .title = "Cannot Resume",
              .message = "The sandbox is paused and could not be resumed"};
  }
}

Problem NoAnswer(std::string sandbox_id, std::string reason) {
  return {.sandbox_id = std::move(sandbox_id), .title = "No Answer", .message = std::move(reason)};
}

bool WantsPage(const http::RequestHead& request) {
  const http::Headers& headers = request.headers;
  if (ToLower(headers.Value("User-Agent")).find("mozilla/") == std::string::npos) return false;
  if (ToLower(headers.Value("Accept")).find("application/json") != std::string::npos) return false;
  // What the browser says about the request outranks what a script in the page says.
  if (auto mode = headers.Get("Sec-Fetch-Mode")) return EqualsIgnoreCase(*mode, "navigate");
  return !EqualsIgnoreCase(headers.Value("X-Requested-With"), "XMLHttpRequest");
}

http::Response Render(const Problem& problem, const http::RequestHead& request) {
  // A refused preflight would hide the problem itself from the script that asks.
  if (IsPreflight(request)) return AnswerPreflight(request);
  http::Response response;
  if (WantsPage(request)) {
    response = Page(problem);
  } else {
    boost::json::object body{{"sandboxId", problem.sandbox_id}, {"message", problem.message}};
    if (problem.port) body["port"] = problem.port;
    body["code"] = problem.status;
    response = http::Response::Json(problem.status, body);
    response.headers.Set("Content-Type", "application/json; charset=utf-8");
  }
  response.headers.Set("Cache-Control", "no-store");
  if (problem.status == 503) response.headers.Set("Retry-After", "10");
  if (problem.status == 429) {
    response.headers.Set("Retry-After", "1");
    response.headers.Set("Connection", "close");  // which takes a place, too
  }
  // An SDK in a page must be able to read why its request failed.
  response.headers.Set("Access-Control-Allow-Origin", "*");
  return response;
}

}  // namespace caisson::gateway

// The routes of /api/v1 for GitHub: pull requests, issues and repositories, and the webhooks that
// GitHub sends.
#pragma once

#include "api/frame.h"
#include "forge/github.h"
#include "work/authors.h"
#include "work/pull_requests.h"

namespace caisson::api {

// What the routes need; all of it outlives the frame.
struct GithubServices {
  forge::GitHub& github;  // with the server's own credential
  work::Authors& authors;
  work::PullRequests& pull_requests;
  const Config& config;
};

// SECURITY: these read with the server's token, and write with it or the user's own
// (pull_request_identity), so they are for members; what the token may not reach, nobody reaches
// through them.
void AddGithubRoutes(Frame& frame, GithubServices services);
// SECURITY: anybody may call it, so nothing is believed before its signature is checked; without a
// secret in the settings nothing is received at all.
void AddWebhookRoutes(Frame& frame, GithubServices services);

}  // namespace caisson::api

// GitHub's things as /api/v1 shows them, and their schemas.
#pragma once

#include <boost/json/object.hpp>

#include "api/frame.h"
#include "forge/github.h"

namespace caisson::api {

json::object Encode(const forge::PullRequest& one);
json::object Encode(const forge::Issue& one);
json::object Encode(const forge::Comment& one);
json::object Encode(const forge::Review& one);
json::object Encode(const forge::Check& one);
json::object Encode(const forge::Budget& one);
json::object Encode(const forge::RepositoryInfo& one);
json::object Encode(const forge::Rights& one);

void AddGithubSchemas(Frame& frame);

// The caller's own key is fine when GitHub does not like the server's.
template <class T>
Result<T> AsOurs(Result<T> answer) {
  if (!answer && answer.error().code() == Code::kUnauthenticated)
    return Fail(Code::kFailedPrecondition, "{}", answer.error().message());
  return answer;
}

}  // namespace caisson::api

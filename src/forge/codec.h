// GitHub's objects as ours.
#pragma once

#include <boost/json/value.hpp>

#include "forge/github.h"

namespace caisson::forge {

// kUnavailable: the answer has no number, so it is no pull request.
Result<PullRequest> ReadPullRequest(const boost::json::value& from);
Result<Issue> ReadIssue(const boost::json::value& from);
Comment ReadComment(const boost::json::value& from);
Review ReadReview(const boost::json::value& from);
RepositoryInfo ReadRepository(const boost::json::value& from);
Check ReadCheck(const boost::json::value& from);

boost::json::object WriteNewPullRequest(const NewPullRequest& request);
boost::json::object WriteChange(const PullRequestChange& change);
boost::json::array WriteList(const std::vector<std::string>& texts);

}  // namespace caisson::forge

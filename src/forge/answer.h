// What an answer of GitHub means when it is not a success.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "http/message.h"

namespace caisson::forge {

// `what` was asked for: "pull request 3 of octo/widget". GitHub's own words are part of the
// message, cut to a length a person reads.
Error ErrorOf(const http::Response& answer, std::string_view what);

// The body of a success; kUnavailable if it is no JSON.
Result<boost::json::value> ReadBody(const http::Response& answer);

// The URL of the next page that a Link header names, "" if there is none.
std::string_view NextPage(std::string_view link);

}  // namespace caisson::forge

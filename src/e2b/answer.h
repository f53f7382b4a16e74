// Answers in E2B's shape.
#pragma once

#include <boost/json/value.hpp>
#include <string_view>

#include "base/error.h"
#include "http/message.h"

namespace caisson::e2b {

// The HTTP status of an error on the control plane.
unsigned StatusOf(Code code);

// {"code": status, "message": ...} and, if given, "error_code": SDKs look at the body's code, not
// at the status line. 429 and 503 carry Retry-After: without it clients do not
// try again.
http::Response ErrorAnswer(unsigned status, std::string_view message,
                           std::string_view error_code = {});
http::Response ErrorAnswer(const Error& error);
// The same where a sandbox should have come up: these errors have names, which newer SDKs look at.
http::Response StartError(const Error& error);

// Browsers may call from any page: the key in the header is what protects, not the origin.
void AddCors(http::ResponseHead& head);
// The answer to a browser that asks first. `methods`: "GET, POST".
http::Response Preflight(const http::RequestHead& request, std::string_view methods);

}  // namespace caisson::e2b

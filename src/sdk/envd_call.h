// One exchange with envd: what commands and files have in common.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>

#include "sdk/envd_client.h"

namespace caisson::sdk {

// A request to envd with everything that every request needs. `user`: the Linux user of an RPC,
// "" = the default.
http::RequestHead EnvdHead(const Transport& transport, std::string method, std::string target,
                           std::string_view content_type, const std::string& user = "");

// One unary call; an error is envd's own, or kUnavailable if it could not be reached.
Task<Result<boost::json::object>> CallEnvd(std::shared_ptr<Transport> transport,
                                           std::string procedure, boost::json::object message,
                                           std::string user = "");

}  // namespace caisson::sdk

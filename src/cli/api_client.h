// The program's own client of a Caisson server: the control plane, and envd of a sandbox.
#pragma once

#include <boost/json/value.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/async.h"
#include "cli/server_access.h"
#include "http/client.h"
#include "sdk/endpoint.h"
#include "sdk/envd_client.h"

namespace caisson::cli {

class ApiClient {
 public:
  // The address is http:// or https://HOST[:PORT]; fails with a sentence if it is anything else.
  static Result<ApiClient> Make(const ServerAccess& server);

  const std::string& url() const { return endpoint_.url; }

  struct Answer {
    boost::json::value body;  // null if it was empty
    std::string next_token;   // of a list that goes on
  };
  // One call of the control plane. An answer that is not 2xx becomes an error with the server's own
  // message.
  Task<Result<Answer>> Call(std::string method, std::string path,
                            std::optional<boost::json::value> body = {});

  // A file, whole.
  Task<Result<std::string>> Get(std::string path);
  // PUTs a file.
  Task<Status> Put(std::string path, std::string content);

  // A streamed answer, piece by piece; `take` returns false to end it. kUnavailable: the server is
  // not there, or the answer ended.
  Task<Status> Stream(std::string path, http::Headers headers,
                      std::function<bool(std::string_view)> take);

  // A request to envd of a sandbox, without its body; the connection is ready for SendHead().
  struct EnvdRequest {
    std::unique_ptr<http::ClientConnection> connection;
    http::RequestHead head;
  };
  // `sandbox`: what GET /sandboxes/{id} answered. `user`: a Linux user, "" = the default.
  Task<Result<EnvdRequest>> OpenEnvd(boost::json::object sandbox, std::string path,
                                     std::string content_type, std::string user);
  // One unary call of envd.
  Task<Status> CallEnvd(boost::json::object sandbox, std::string path, boost::json::object message);
  // A client of it that makes its own connections.
  sdk::EnvdClient Envd(const boost::json::object& sandbox) const;

 private:
  ApiClient() = default;
  Task<Result<std::unique_ptr<http::ClientConnection>>> Connect();
  // A call with a body of any kind.
  Task<Result<http::Response>> Send(std::string method, std::string path, std::string_view type,
                                    std::string body);
  // One whole exchange; keeps the connection for the next.
  Task<Result<http::Response>> Fetch(http::RequestHead head, std::string body);
  http::RequestHead EnvdHead(const boost::json::object& sandbox, std::string path,
                             std::string_view content_type, const std::string& user) const;

  sdk::Endpoint endpoint_;
  std::string api_key_;
  std::unique_ptr<http::ClientConnection> idle_;
};

}  // namespace caisson::cli

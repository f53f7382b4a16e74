// The program's own client of a Caisson server: the control plane, and envd of a sandbox.
#pragma once

#include <boost/json/value.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/async.h"
#include "http/client.h"

namespace caisson::cli {

class ApiClient {
 public:
  // `url`: http:// or https://HOST[:PORT]. Fails with a sentence if it is anything else. `ca_file`:
  // an authority to trust besides the system's, or "".
  static Result<ApiClient> Make(std::string url, std::string api_key, std::string ca_file);

  const std::string& url() const { return url_; }

  struct Answer {
    boost::json::value body;  // null if it was empty
    std::string next_token;   // of a list that goes on
  };
  // One call of the control plane. An answer that is not 2xx becomes an error with the server's own
  // message.
  Task<Result<Answer>> Call(std::string method, std::string path,
                            std::optional<boost::json::value> body = {});

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

 private:
  ApiClient() = default;
  Task<Result<std::unique_ptr<http::ClientConnection>>> Connect();
  // One whole exchange; keeps the connection for the next.
  Task<Result<http::Response>> Fetch(http::RequestHead head, std::string body);
  http::RequestHead EnvdHead(const boost::json::object& sandbox, std::string path,
                             std::string_view content_type, const std::string& user) const;

  std::string url_;
  std::string host_port_;
  bool tls_ = false;
  std::string ca_file_;
  std::string api_key_;
  std::unique_ptr<http::ClientConnection> idle_;
};

}  // namespace caisson::cli

// The events of one process, read from the answer of envd's Start or Connect.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/async.h"
#include "http/client.h"

namespace caisson::sdk {

// The error of an answer that is not what was asked for: envd's own code and message if it has
// them, else what the status says.
Error ErrorOfAnswer(unsigned status, std::string_view body);

struct ProcessEvent {
  enum class Kind { kStarted, kStdout, kStderr, kPty, kAlive, kEnded };
  Kind kind = Kind::kAlive;
  int64_t pid = 0;    // kStarted
  std::string data;   // kStdout, kStderr, kPty: bytes as they were written
  int exit_code = 0;  // kEnded; 128 + n if signal n ended it
};

class ProcessStream {
 public:
  // Sends the request and reads the answer's head. `head` has everything but the body's framing.
  static Task<Result<ProcessStream>> Open(std::unique_ptr<http::ClientConnection> connection,
                                          http::RequestHead head, boost::json::object message);

  // The next event; nothing after the end. kUnavailable: the stream broke off before the end was
  // told. envd's own error (kDeadlineExceeded, kNotFound ...) as it says it.
  Task<Result<std::optional<ProcessEvent>>> Next();

 private:
  explicit ProcessStream(std::unique_ptr<http::ClientConnection> connection)
      : connection_(std::move(connection)) {}
  Task<Status> Need(size_t size);

  std::unique_ptr<http::ClientConnection> connection_;
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace caisson::sdk
